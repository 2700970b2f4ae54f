#pragma once
// The one header a program includes to build graphs, train them and run them. Everything public is
// sluice::dsl::…; the names of the layers below that a user meets are re-exported here.
//
//   #include <dsl/dsl.h>
//   using namespace sluice::dsl;
//   Graph g;
//   Tensor x = placeholder(g, DType::kFloat, {-1, 784}, "x");
//   Tensor logits = layers::dense(x, 10);
//   Session s(g);

#include "dsl/check_gradient.h"
#include "dsl/initializers.h"
#include "dsl/layers.h"
#include "dsl/losses.h"
#include "dsl/metrics.h"
#include "dsl/ops/array.h"
#include "dsl/ops/control.h"
#include "dsl/ops/index.h"
#include "dsl/ops/math.h"
#include "dsl/ops/nn.h"
#include "dsl/ops/random.h"
#include "dsl/ops/text.h"
#include "dsl/partitioned.h"
#include "dsl/regularizers.h"
#include "dsl/streaming_metrics.h"
#include "dsl/summary.h"
#include "dsl/tensor.h"
#include "dsl/train/accumulation.h"
#include "dsl/train/constraint.h"
#include "dsl/train/evaluation.h"
#include "dsl/train/gradient_noise.h"
#include "dsl/train/loop.h"
#include "dsl/train/loss_scale.h"
#include "dsl/train/more_hooks.h"
#include "dsl/train/moving_averages.h"
#include "dsl/train/optimizers_more.h"
#include "dsl/train/readiness.h"
#include "dsl/train/saver.h"
#include "dsl/train/schedule.h"
#include "dsl/train/summary_writer.h"
#include "dsl/train/train_op.h"
#include "dsl/train/warm_start.h"
#include "dsl/variable.h"
#include "graph/graphdef.h"
#include "graph/op.h"
#include "graph/scopes.h"
#include "passes/check_numerics.h"
#include "passes/clip_gradients.h"
#include "passes/gradients.h"
#include "runtime/session.h"

namespace sluice::dsl {

using graph::AttrScope;
using graph::ColocateWith;
using graph::ControlDependencies;
using graph::DeviceScope;
using graph::NameScope;
using graph::OpRegistry;
using graph::standard_ops;
using passes::add_check_numerics_ops;
using passes::AggregationMethod;
using passes::clip_by_average_norm;
using passes::clip_by_global_norm;
using passes::clip_by_norm;
using passes::clip_by_value;
using passes::global_norm;
using passes::GradientOptions;
using passes::gradients;
using passes::UnconnectedGradients;
using runtime::Array;
using runtime::Feed;
using runtime::RunMetadata;
using runtime::RunOptions;
using runtime::Session;
using runtime::SessionOptions;

}  // namespace sluice::dsl
