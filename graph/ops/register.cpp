#include "graph/ops/register.h"

namespace sluice::graph {

const OpRegistry& standard_ops() {
  static const OpRegistry registry = [] {
    OpRegistry r;
    ops::register_array(r);
    ops::register_array_fill(r);
    ops::register_array_gather(r);
    ops::register_array_join(r);
    ops::register_array_scatter(r);
    ops::register_array_search(r);
    ops::register_array_segment(r);
    ops::register_array_shape(r);
    ops::register_array_slice(r);
    ops::register_control(r);
    ops::register_data(r);
    ops::register_image(r);
    ops::register_input(r);
    ops::register_math(r);
    ops::register_math_binary(r);
    ops::register_math_matrix(r);
    ops::register_math_reduce(r);
    ops::register_nn(r);
    ops::register_nn_conv(r);
    ops::register_nn_loss(r);
    ops::register_nn_norm(r);
    ops::register_nn_pool(r);
    ops::register_random(r);
    ops::register_state(r);
    ops::register_state_scatter(r);
    ops::register_strings(r);
    ops::register_summary(r);
    ops::register_train(r);
    return r;
  }();
  return registry;
}

}  // namespace sluice::graph
