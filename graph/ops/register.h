#pragma once
// One function a file of graph/ops; register.cpp calls them all. Ops are found nowhere else.

#include "graph/op.h"

namespace sluice::graph::ops {

void register_array(OpRegistry& r);
void register_array_fill(OpRegistry& r);
void register_array_gather(OpRegistry& r);
void register_array_join(OpRegistry& r);
void register_array_scatter(OpRegistry& r);
void register_array_search(OpRegistry& r);
void register_array_segment(OpRegistry& r);
void register_array_shape(OpRegistry& r);
void register_array_slice(OpRegistry& r);
void register_control(OpRegistry& r);
void register_data(OpRegistry& r);
void register_image(OpRegistry& r);
void register_input(OpRegistry& r);
void register_math(OpRegistry& r);
void register_math_binary(OpRegistry& r);
void register_math_matrix(OpRegistry& r);
void register_math_reduce(OpRegistry& r);
void register_nn(OpRegistry& r);
void register_nn_conv(OpRegistry& r);
void register_nn_loss(OpRegistry& r);
void register_nn_norm(OpRegistry& r);
void register_nn_pool(OpRegistry& r);
void register_random(OpRegistry& r);
void register_state(OpRegistry& r);
void register_state_scatter(OpRegistry& r);
void register_strings(OpRegistry& r);
void register_summary(OpRegistry& r);
void register_train(OpRegistry& r);

}  // namespace sluice::graph::ops
