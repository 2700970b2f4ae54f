// Lesson 1: a first graph.
//
// A program does not compute: it describes a computation, as a graph of nodes. A session runs parts of the
// graph, as often as you like. What you see here:
//   * placeholders stand for values that come with each run;
//   * every node has a name, an op (TensorFlow's), and outputs with a dtype and a shape;
//   * shapes may be partly unknown (-1) and are checked while you build;
//   * gradients are nodes like any others, so you can look at them.

#include <iostream>

#include "dsl/dsl.h"
#include "tools/lessons/lesson.h"

using namespace sluice::dsl;

int main() {
  Graph g;
  Tensor x = placeholder(g, DType::kFloat, {-1, 2}, "x");
  Tensor w = constant(g, std::vector<float>{1, 2}, {2, 1}, "w");
  Tensor y = reduce_sum(square(matmul(x, w)), {}, {.name = "y"});
  Tensor dx = gradients({y}, {x})[0].dense;

  // The graph as text: one node a line. `graph::write_graph_file(g, "first.pbtxt")` would write the file that
  // TensorBoard, Netron and `sluice-graph dump` open.
  std::cout << g.str();

  // A run asks for values ("fetches") and gives values ("feeds"). Only what the fetches need is computed.
  Session session(g);
  Array rows = Array::from<float>({3, 2}, {1, 0, 0, 1, 1, 1});
  auto out = session.run({y, dx}, {{x, rows}});
  std::cout << "y = " << out[0].item<float>() << '\n';
  EXPECT_THAT_HERE(out[0].item<float>() == 1 + 4 + 9);
  EXPECT_THAT_HERE(out[1].as<float>()[5] == 2 * 3 * 2);  // d/dx of (x·w)², third row, second column

  // Another number of rows is another plan, compiled when it is first met and kept.
  EXPECT_THAT_HERE(session.run({y}, {{x, Array::from<float>({1, 2}, {2, 2})}})[0].item<float>() == 36);

  // Mistakes are told at once, in the words of your program: the node, its types, and your line.
  try {
    matmul(x, constant(g, std::vector<float>{1, 2, 3}, {3, 1}));
    return 1;
  } catch (const sluice::Error& e) {
    std::cout << e.what() << '\n';
    EXPECT_THAT_HERE(std::string(e.what()).find("01_first_graph.cpp") != std::string::npos);
  }
  return 0;
}
