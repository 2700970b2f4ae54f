// Lesson 2: fit a line.
//
// Variables keep their value from run to run. An optimizer adds the nodes that change them; running its train
// op once is one step. What you see here:
//   * variables must be initialised by a run of an op, like everything else that changes something;
//   * a loss from `losses::` joins the graph's LOSSES collection, and get_total_loss adds them up;
//   * create_train_op returns the loss, and fetching it trains.

#include <iostream>
#include <random>

#include "dsl/dsl.h"
#include "tools/lessons/lesson.h"

using namespace sluice::dsl;

int main() {
  Graph g;
  Tensor x = placeholder(g, DType::kFloat, {-1, 1}, "x");
  Tensor y = placeholder(g, DType::kFloat, {-1, 1}, "y");
  Tensor line = layers::dense(x, 1, {.name = "line"});
  losses::mean_squared_error(y, line);
  train::GradientDescentOptimizer optimizer(0.1);
  Tensor train_op = train::create_train_op(losses::get_total_loss(g), optimizer);

  Session session(g);
  session.run({}, {}, {&global_variables_initializer(g)});

  // y = 3x - 1, with a little noise.
  std::mt19937 random(7);
  std::normal_distribution<float> noise(0, 0.01f);
  std::vector<float> xs(64), ys(64);
  for (size_t i = 0; i < xs.size(); ++i) {
    xs[i] = static_cast<float>(i) / 32 - 1;
    ys[i] = 3 * xs[i] - 1 + noise(random);
  }
  std::vector<Feed> feeds{{x, Array::from<float>({64, 1}, xs)}, {y, Array::from<float>({64, 1}, ys)}};
  float loss = 0;
  for (int step = 0; step < 200; ++step) {
    loss = session.run({train_op}, feeds)[0].item<float>();
    if (step % 50 == 0) std::cout << "step " << step << ": loss " << loss << '\n';
  }

  // Variables are found by name; their value is one more fetch.
  Variable kernel = train::get_unique_variable(g, "line/kernel"),
           bias = train::get_unique_variable(g, "line/bias");
  auto learned = session.run({kernel.snapshot(), bias.snapshot()});
  std::cout << "y = " << learned[0].item<float>() << " x + " << learned[1].item<float>() << '\n';
  EXPECT_THAT_HERE(loss < 1e-3f);
  EXPECT_THAT_HERE(lesson::near(learned[0].item<float>(), 3, 0.02));
  EXPECT_THAT_HERE(lesson::near(learned[1].item<float>(), -1, 0.02));
  return 0;
}
