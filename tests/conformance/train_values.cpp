// Values of our training library for tests/conformance/train_values.py: ten steps of every optimizer, dense
// and sparse, on resource and reference variables; losses; streaming metrics; schedules; moving averages. One
// JSON object a line: {"case": …, "values": {name: [numbers]}}. Inputs come from x(k) below, which the script
// repeats.

#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>

#include "dsl/dsl.h"

namespace sluice::dsl {
namespace {

using namespace train;  // NOLINT: the subject of this program

// k-th number of the sequence, in [-1, 1]; exact in double.
double x(int64_t k) { return static_cast<double>((k * 37 + 11) % 101) / 50.0 - 1.0; }

std::vector<float> floats(int64_t start, int64_t n) {
  std::vector<float> v;
  for (int64_t i = 0; i < n; ++i) v.push_back(static_cast<float>(x(start + i)));
  return v;
}

using Values = std::vector<std::pair<std::string, Array>>;

void print(const std::string& name, const Values& values) {
  std::printf("{\"case\": \"%s\", \"values\": {", name.c_str());
  bool first = true;
  for (const auto& [key, array] : values) {
    std::printf("%s\"%s\": [", first ? "" : ", ", key.c_str());
    first = false;
    const std::vector<double> v = array.to_literal().to_doubles();
    for (size_t i = 0; i < v.size(); ++i) std::printf("%s%.9g", i ? ", " : "", v[i]);
    std::printf("]");
  }
  std::printf("}}\n");
}

using Make = std::function<std::unique_ptr<Optimizer>(const Variable& global_step)>;

enum class Gradient { kDense, kSparse };

// w [5, 2] and b [5] start at x(0…) and x(100…); gradients are placeholders.
void run_optimizer(const std::string& name, const Make& make, Gradient kind, bool resource) {
  constexpr int kSteps = 10;
  Graph g;
  auto variable = [&](const char* n, Dims dims, int64_t start) {
    const std::vector<float> v = floats(start, graph::num_elements(dims));
    return get_variable(g, n, dims,
                        {.initializer = constant_initializer(std::vector<double>(v.begin(), v.end())),
                         .use_resource = resource});
  };
  const Variable w = variable("w", {5, 2}, 0), b = variable("b", {5}, 100);
  const bool sparse = kind == Gradient::kSparse;
  // Rows 3, 0, 3: one twice.
  const Tensor rows = constant(g, std::vector<int32_t>{3, 0, 3});
  const Dims wd = sparse ? Dims{3, 2} : Dims{5, 2}, bd = sparse ? Dims{3} : Dims{5};
  const Tensor gw = placeholder(g, DType::kFloat, Shape(wd), "gw"),
               gb = placeholder(g, DType::kFloat, Shape(bd), "gb");
  auto grad = [&](const Tensor& values, const Dims& shape) {
    if (!sparse) return GradValue(values.output());
    return GradValue(graph::IndexedSlices{values, rows, constant(g, shape)});
  };
  const Variable step = get_or_create_global_step(g);
  const std::unique_ptr<Optimizer> opt = make(step);
  Node& update = opt->apply_gradients({{grad(gw, {5, 2}), w}, {grad(gb, {5}), b}}, step);
  Node& init = global_variables_initializer(g);
  Session s(g);
  s.run({}, {}, {&init});
  for (int k = 0; k < kSteps; ++k) {
    const Array aw = Array::from<float>(wd, floats(200 + 20 * k, graph::num_elements(wd)));
    const Array ab = Array::from<float>(bd, floats(500 + 20 * k, graph::num_elements(bd)));
    s.run({}, {{gw, aw}, {gb, ab}}, {&update});
  }
  Values out;
  for (const Variable& v : global_variables(g)) out.emplace_back(v.name(), s.run({v.snapshot()})[0]);
  print(cat("optimizer ", name, sparse ? " sparse" : " dense", resource ? " resource" : " ref"), out);
}

void optimizers() {
  const std::vector<std::pair<std::string, Make>> all = {
      {"GradientDescent", [](const Variable&) { return std::make_unique<GradientDescentOptimizer>(0.1); }},
      {"Momentum", [](const Variable&) { return std::make_unique<MomentumOptimizer>(0.1, 0.9); }},
      {"Nesterov",
       [](const Variable&) {
         return std::make_unique<MomentumOptimizer>(0.1, 0.9, MomentumOptions{.use_nesterov = true});
       }},
      {"RMSProp",
       [](const Variable&) {
         return std::make_unique<RMSPropOptimizer>(0.01, RMSPropOptions{.momentum = 0.9});
       }},
      {"RMSPropCentered",
       [](const Variable&) {
         return std::make_unique<RMSPropOptimizer>(0.01, RMSPropOptions{.momentum = 0.9, .centered = true});
       }},
      {"Adam", [](const Variable&) { return std::make_unique<AdamOptimizer>(0.01); }},
      {"Adagrad", [](const Variable&) { return std::make_unique<AdagradOptimizer>(0.1); }},
      {"AdagradDA",
       [](const Variable& step) {
         return std::make_unique<AdagradDAOptimizer>(
             0.1, step,
             AdagradDAOptions{.l1_regularization_strength = 0.001, .l2_regularization_strength = 0.01});
       }},
      {"Adadelta", [](const Variable&) { return std::make_unique<AdadeltaOptimizer>(1.0); }},
      {"Ftrl",
       [](const Variable&) {
         return std::make_unique<FtrlOptimizer>(
             0.1, FtrlOptions{.l1_regularization_strength = 0.01, .l2_regularization_strength = 0.02});
       }},
      {"FtrlShrinkage",
       [](const Variable&) {
         return std::make_unique<FtrlOptimizer>(0.1,
                                                FtrlOptions{.learning_rate_power = -0.6,
                                                            .l1_regularization_strength = 0.01,
                                                            .l2_shrinkage_regularization_strength = 0.1});
       }},
      {"ProximalGradientDescent",
       [](const Variable&) {
         return std::make_unique<ProximalGradientDescentOptimizer>(
             0.1, ProximalOptions{.l1_regularization_strength = 0.02, .l2_regularization_strength = 0.03});
       }},
      {"ProximalAdagrad",
       [](const Variable&) {
         return std::make_unique<ProximalAdagradOptimizer>(
             0.1,
             ProximalAdagradOptions{.l1_regularization_strength = 0.02, .l2_regularization_strength = 0.03});
       }},
      {"AdaMax", [](const Variable&) { return std::make_unique<AdaMaxOptimizer>(0.01); }},
      {"AdamW", [](const Variable&) { return std::make_unique<AdamWOptimizer>(0.01, 0.01); }},
      {"LARS",
       [](const Variable&) {
         return std::make_unique<LARSOptimizer>(
             0.5, LARSOptions{.weight_decay = 0.01, .eeta = 0.1, .skip_list = {"b"}});
       }},
      {"LAMB",
       [](const Variable&) {
         return std::make_unique<LAMBOptimizer>(
             0.01, LAMBOptions{.weight_decay = 0.1, .exclude_from_weight_decay = {"b"}});
       }},
  };
  for (const auto& [name, make] : all)
    for (const Gradient kind : {Gradient::kDense, Gradient::kSparse})
      for (const bool resource : {true, false}) run_optimizer(name, make, kind, resource);
}

void loss_values() {
  Graph g;
  const Tensor p = constant(g, floats(0, 12), {4, 3}), z = constant(g, floats(50, 12), {4, 3});
  const Tensor weights = constant(g, std::vector<float>{0.5f, 0, 2, 1}, {4, 1});
  const Tensor row_weights = constant(g, std::vector<float>{0.5f, 0, 2, 1});
  const Tensor binary = cast(greater(z, 0.0), DType::kFloat);
  const Tensor share = sigmoid(p), classes = constant(g, std::vector<int32_t>{2, 0, 1, 1});
  std::vector<std::pair<std::string, Tensor>> t;
  using losses::LossOptions;
  using losses::Reduction;
  const std::pair<const char*, Reduction> reductions[] = {
      {"none", Reduction::kNone},
      {"weighted_sum", Reduction::kSum},
      {"weighted_mean", Reduction::kMean},
      {"weighted_sum_by_nonzero_weights", Reduction::kSumByNonzeroWeights},
      {"weighted_sum_over_batch_size", Reduction::kSumOverBatchSize}};
  for (const auto& [name, reduction] : reductions) {
    LossOptions o{.weights = Operand(weights), .reduction = reduction};
    t.emplace_back(cat("absolute_difference ", name), losses::absolute_difference(z, p, o));
    t.emplace_back(cat("hinge_loss ", name), losses::hinge_loss(binary, p, o));
    t.emplace_back(cat("huber_loss ", name), losses::huber_loss(z, p, o, 0.5));
    t.emplace_back(cat("log_loss ", name), losses::log_loss(binary, share, o));
    t.emplace_back(cat("mean_squared_error ", name), losses::mean_squared_error(z, p, o));
    t.emplace_back(cat("sigmoid_cross_entropy ", name), losses::sigmoid_cross_entropy(binary, p, o, 0.1));
    t.emplace_back(cat("cosine_distance ", name), losses::cosine_distance(z, p, 1, o));
    LossOptions rows{.weights = Operand(row_weights), .reduction = reduction};
    t.emplace_back(cat("softmax_cross_entropy ", name),
                   losses::softmax_cross_entropy(one_hot(classes, 3), p, rows, 0.1));
    t.emplace_back(cat("sparse_softmax_cross_entropy ", name),
                   losses::sparse_softmax_cross_entropy(classes, p, rows));
  }
  t.emplace_back("mean_pairwise_squared_error",
                 losses::mean_pairwise_squared_error(z, p, {.weights = Operand(weights)}));
  t.emplace_back("mean_pairwise_squared_error unweighted", losses::mean_pairwise_squared_error(z, p));
  Session s(g);
  Values out;
  for (const auto& [name, tensor] : t) out.emplace_back(name, s.run({tensor})[0]);
  print("losses", out);
}

// Four batches of six.
void metric_values() {
  Graph g;
  const Tensor p = placeholder(g, DType::kFloat, {6}, "p"), z = placeholder(g, DType::kFloat, {6}, "z");
  const Tensor w = placeholder(g, DType::kFloat, {6}, "w");
  const Tensor positive = greater(z, 0.0), guess = greater(p, 0.0), share = multiply(add(p, 1.0), 0.5);
  auto class_of = [](const Tensor& t) { return cast(floor(multiply(add(t, 1.0), 1.499)), DType::kInt64); };
  const metrics::MetricOptions weighted{.weights = Operand(w)};
  using metrics::StreamingMetric;
  std::vector<std::pair<std::string, StreamingMetric>> m;
  for (const bool use : {false, true}) {
    const metrics::MetricOptions o = use ? weighted : metrics::MetricOptions{};
    const char* s = use ? " weighted" : "";
    m.emplace_back(cat("mean", s), metrics::streaming_mean(p, o));
    m.emplace_back(cat("mean_tensor", s), metrics::streaming_mean_tensor(p, o));
    m.emplace_back(cat("accuracy", s), metrics::streaming_accuracy(class_of(z), class_of(p), o));
    m.emplace_back(cat("mean_absolute_error", s), metrics::streaming_mean_absolute_error(z, p, o));
    m.emplace_back(cat("mean_squared_error", s), metrics::streaming_mean_squared_error(z, p, o));
    m.emplace_back(cat("root_mean_squared_error", s), metrics::streaming_root_mean_squared_error(z, p, o));
    m.emplace_back(cat("true_positives", s), metrics::streaming_true_positives(positive, guess, o));
    m.emplace_back(cat("false_positives", s), metrics::streaming_false_positives(positive, guess, o));
    m.emplace_back(cat("true_negatives", s), metrics::streaming_true_negatives(positive, guess, o));
    m.emplace_back(cat("false_negatives", s), metrics::streaming_false_negatives(positive, guess, o));
    m.emplace_back(cat("precision", s), metrics::streaming_precision(positive, guess, o));
    m.emplace_back(cat("recall", s), metrics::streaming_recall(positive, guess, o));
    m.emplace_back(cat("mean_iou", s), metrics::streaming_mean_iou(class_of(z), class_of(p), 3, o));
    const std::tuple<const char*, metrics::Curve, metrics::Summation> kinds[] = {
        {"ROC trapezoidal", metrics::Curve::kRoc, metrics::Summation::kTrapezoidal},
        {"PR trapezoidal", metrics::Curve::kPrecisionRecall, metrics::Summation::kTrapezoidal},
        {"PR careful_interpolation", metrics::Curve::kPrecisionRecall,
         metrics::Summation::kCarefulInterpolation},
        {"ROC minoring", metrics::Curve::kRoc, metrics::Summation::kMinoring},
        {"ROC majoring", metrics::Curve::kRoc, metrics::Summation::kMajoring}};
    for (const auto& [name, curve, summation] : kinds)
      m.emplace_back(
          cat("auc ", name, s),
          metrics::streaming_auc(
              positive, share, {.metric = o, .num_thresholds = 50, .curve = curve, .summation = summation}));
  }
  std::vector<Output> values, updates;
  for (const auto& [name, metric] : m) {
    values.push_back(metric.value.output());
    updates.push_back(metric.update.output());
  }
  Node& init = local_variables_initializer(g);
  Session s(g);
  s.run({}, {}, {&init});
  Values out;
  for (int batch = 0; batch < 4; ++batch) {
    auto fed = [&](int64_t start) { return Array::from<float>({6}, floats(start + 6 * batch, 6)); };
    std::vector<float> weights;
    for (int i = 0; i < 6; ++i) weights.push_back(static_cast<float>((batch + i) % 3));
    const std::vector<Array> got =
        s.run(updates, {{p, fed(0)}, {z, fed(70)}, {w, Array::from<float>({6}, weights)}});
    for (size_t i = 0; i < m.size(); ++i) out.emplace_back(cat(m[i].first, " update ", batch), got[i]);
  }
  const std::vector<Array> got = s.run(values);
  for (size_t i = 0; i < m.size(); ++i) out.emplace_back(cat(m[i].first, " value"), got[i]);
  print("metrics", out);
}

void schedule_values() {
  Graph g;
  const Tensor step = placeholder(g, DType::kInt64, {}, "step");
  std::vector<std::pair<std::string, Tensor>> t;
  for (const bool stairs : {false, true}) {
    const char* s = stairs ? " staircase" : "";
    t.emplace_back(cat("exponential_decay", s), exponential_decay(0.1, step, 7, 0.9, stairs));
    t.emplace_back(cat("natural_exp_decay", s), natural_exp_decay(0.1, step, 7, 0.9, stairs));
    t.emplace_back(cat("inverse_time_decay", s), inverse_time_decay(0.1, step, 7, 0.9, stairs));
    t.emplace_back(
        cat("polynomial_decay", stairs ? " cycle" : ""),
        polynomial_decay(0.1, step, 7, {.end_learning_rate = 0.01, .power = 0.5, .cycle = stairs}));
  }
  t.emplace_back("piecewise_constant", piecewise_constant(step, {3, 10}, {1.0, 0.5, 0.1}));
  t.emplace_back("cosine_decay", cosine_decay(0.1, step, 15, 0.2));
  t.emplace_back("cosine_decay_restarts",
                 cosine_decay_restarts(0.1, step, 5, {.t_mul = 2, .m_mul = 0.5, .alpha = 0.1}));
  t.emplace_back("cosine_decay_restarts same", cosine_decay_restarts(0.1, step, 5, {.t_mul = 1}));
  t.emplace_back("linear_cosine_decay", linear_cosine_decay(0.1, step, 15, {.alpha = 0.1, .beta = 0.01}));
  t.emplace_back("noisy_linear_cosine_decay",
                 noisy_linear_cosine_decay(0.1, step, 15, {.initial_variance = 1e-20, .alpha = 0.1}));
  Session s(g);
  Values out;
  for (int64_t k = 0; k <= 18; k += 3)
    for (const auto& [name, tensor] : t)
      out.emplace_back(cat(name, " at ", k), s.run({tensor}, {{step, Array::scalar<int64_t>(k)}})[0]);
  print("schedules", out);
}

// A variable and a tensor averaged over five steps.
void moving_average_values() {
  Graph g;
  const Variable v = get_variable(g, "v", {3}, {.initializer = zeros_initializer()});
  const Variable n = get_or_create_global_step(g);
  const Tensor fed = placeholder(g, DType::kFloat, {3}, "fed"), t = multiply(fed, 2.0, "t");
  ExponentialMovingAverage plain(0.9), early(0.9, {.num_updates = Operand(n), .name = "Early"}),
      unbiased(0.9, {.zero_debias = true, .name = "Unbiased"});
  Node& set = assign_op(v, fed);
  std::vector<Node*> all;
  {
    graph::ControlDependencies after(g, {&set});
    all = {&plain.apply(g), &early.apply(g), &unbiased.apply(g, std::vector<Variable>{}, {t})};
  }
  Node* counted = nullptr;
  {
    graph::ControlDependencies after(g, all);
    counted = &assign_add_op(n, 1);
  }
  Node& init = global_variables_initializer(g);
  Session s(g);
  s.run({}, {}, {&init});
  for (int k = 0; k < 5; ++k) s.run({}, {{fed, Array::from<float>({3}, floats(30 * k, 3))}}, {counted});
  Values out;
  for (const Variable& x : global_variables(g)) out.emplace_back(x.name(), s.run({x.snapshot()})[0]);
  print("moving averages", out);
}

}  // namespace
}  // namespace sluice::dsl

int main() {
  try {
    sluice::dsl::optimizers();
    sluice::dsl::loss_values();
    sluice::dsl::metric_values();
    sluice::dsl::schedule_values();
    sluice::dsl::moving_average_values();
  } catch (const sluice::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
