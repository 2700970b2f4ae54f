// The op-case table as files for tests/conformance/op_table.py.
//   ops_conformance export DIR   writes DIR/cases.json and the values: inputs, and outputs of the reference
//   loops ops_conformance replay DIR   for every DIR/*/graph.pb: feeds DIR/*/feed_<k>.npy to feed_<k>,
//   fetches the names
//                                in fetches.txt into out_<k>.npy; prints what fails

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "graph/graphdef.h"
#include "runtime/io/npy.h"
#include "runtime/session.h"
#include "tests/ops/op_case.h"

namespace sluice::optest {
namespace {

namespace fs = std::filesystem;

std::string quoted(const std::string& s) {
  std::string q = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') q += '\\';
    q += c;
  }
  return q + '"';
}

std::string attr_json(const graph::AttrValue& v) {
  if (auto* s = v.get_if<std::string>()) return quoted(*s);
  if (auto* i = v.get_if<int64_t>()) return cat(*i);
  if (auto* f = v.get_if<float>()) return cat(static_cast<double>(*f));
  if (auto* b = v.get_if<bool>()) return *b ? "true" : "false";
  if (auto* t = v.get_if<DType>()) return cat("{\"dtype\": ", static_cast<int>(*t), "}");
  if (auto* list = v.get_if<std::vector<int64_t>>()) {
    std::string s = "[";
    for (int64_t i : *list) s += cat(s.size() > 1 ? ", " : "", i);
    return s + "]";
  }
  throw_error(Code::kUnimplemented, cat("attr of kind ", v.kind(), " in the table"));
}

// "name": value files; an argument that takes several inputs is a list.
std::string inputs_json(const DirectRun& direct, const std::string& prefix) {
  std::string s;
  for (const graph::ArgSpec& arg : direct.node().def().input_args) {
    const auto [first, last] = direct.node().input_range(arg.name);
    const bool list = !arg.number_attr.empty() || !arg.type_list_attr.empty();
    s += cat(s.empty() ? "" : ", ", quoted(arg.name), ": ", list ? "[" : "");
    for (int i = first; i < last; ++i) s += cat(i > first ? ", " : "", quoted(cat(prefix, "in_", i, ".npy")));
    if (list) s += "]";
  }
  return s;
}

int export_cases(const fs::path& dir) {
  fs::create_directories(dir);
  std::ofstream json(dir / "cases.json");
  json << "[";
  bool first = true;
  for (const OpCase& c : all_cases()) {
    const std::vector<Array> in = make_inputs(c, DType::kFloat);
    if (!c.in_tensorflow ||
        std::any_of(in.begin(), in.end(), [](const Array& a) { return a.dtype() == DType::kString; }))
      continue;
    std::vector<Operand> operands(in.begin(), in.end());
    const DirectRun direct({.op = c.op, .inputs = operands, .attrs = c.attrs});
    std::string why;
    auto kernel = direct.make("reference", why);
    SLUICE_REQUIRE(kernel != nullptr, Code::kUnimplemented, c.name, ": ", why);
    const std::vector<Array> out = direct.run(*kernel);
    for (size_t i = 0; i < in.size(); ++i)
      runtime::io::write_npy((dir / cat(c.name, ".in_", i, ".npy")).string(), in[i]);
    for (size_t i = 0; i < out.size(); ++i)
      runtime::io::write_npy((dir / cat(c.name, ".out_", i, ".npy")).string(), out[i]);
    std::string attrs, gradient;
    for (const auto& [name, value] : c.attrs)
      attrs += cat(attrs.empty() ? "" : ", ", quoted(name), ": ", attr_json(value));
    for (int g : c.gradient) gradient += cat(gradient.empty() ? "" : ", ", g);
    json << (first ? "\n" : ",\n")
         << cat("{\"name\": ", quoted(c.name), ", \"op\": ", quoted(c.op), ", \"inputs\": {",
                inputs_json(direct, c.name + "."), "}, \"attrs\": {", attrs, "}, \"outputs\": ", out.size(),
                ", \"tolerance\": ", c.tolerance, ", \"gradient\": [", gradient, "]}");
    first = false;
  }
  json << "\n]\n";
  return json.good() ? 0 : 1;
}

void replay_one(const fs::path& dir) {
  graph::Graph g;
  graph::read_graph_file(g, (dir / "graph.pb").string());
  std::vector<runtime::Feed> feeds;
  for (int k = 0; fs::exists(dir / cat("feed_", k, ".npy")); ++k)
    feeds.push_back(
        {g.output(cat("feed_", k, ":0")), runtime::io::read_npy((dir / cat("feed_", k, ".npy")).string())});
  std::vector<graph::Output> fetches;
  std::ifstream names(dir / "fetches.txt");
  for (std::string name; std::getline(names, name);) fetches.push_back(g.output(name));
  runtime::Session session(g);
  const std::vector<Array> out = session.run(fetches, feeds);
  for (size_t k = 0; k < out.size(); ++k)
    runtime::io::write_npy((dir / cat("out_", k, ".npy")).string(), out[k]);
}

int replay(const fs::path& dir) {
  int failed = 0;
  for (const auto& entry : fs::directory_iterator(dir)) {
    if (!fs::exists(entry.path() / "graph.pb")) continue;
    try {
      replay_one(entry.path());
    } catch (const std::exception& e) {
      std::printf("%s: %s\n", entry.path().filename().c_str(), e.what());
      ++failed;
    }
  }
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace sluice::optest

int main(int argc, char** argv) {
  const std::string verb = argc == 3 ? argv[1] : "";
  try {
    if (verb == "export") return sluice::optest::export_cases(argv[2]);
    if (verb == "replay") return sluice::optest::replay(argv[2]);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "ops_conformance: %s\n", e.what());
    return 1;
  }
  std::fprintf(stderr, "usage: ops_conformance export|replay DIR\n");
  return 2;
}
