// Checkpoints for checkpoints.py: checkpoint_tool write PREFIX SHARDS | list PREFIX | save PREFIX PARTS
// [FROM]. `write` puts a tensor of every type under "t/<type>", a scalar and an empty one beside it, and a
// sliced one. `list` prints "name type dims hex-of-bytes" a line (strings: hex of each and a comma). `save`
// saves variables, one of them partitioned, with a Saver, after restoring FROM.
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>

#include "dsl/dsl.h"
#include "dsl/partitioned.h"
#include "dsl/train/saver.h"
#include "runtime/io/bundle.h"

namespace {

using namespace sluice;
using runtime::Array;
namespace io = runtime::io;

std::string hex(const void* data, size_t size) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  const auto* p = static_cast<const unsigned char*>(data);
  for (size_t i = 0; i < size; ++i) out += kDigits[p[i] >> 4], out += kDigits[p[i] & 15];
  return out;
}

// Bytes that no type reads as NaN or as a bool other than 0 and 1.
Array pattern(graph::DType type, graph::Dims dims) {
  if (type == graph::DType::kString) {
    Array a(type, std::move(dims));
    int k = 0;
    for (std::string& s : a.string_values())
      s = std::string(static_cast<size_t>(k * k * 37), static_cast<char>(k)), ++k;
    return a;
  }
  Array a(type, std::move(dims));
  auto* p = static_cast<unsigned char*>(a.data());
  for (size_t i = 0; i < a.bytes(); ++i)
    p[i] = static_cast<unsigned char>(type == graph::DType::kBool ? i & 1 : (i * 11 + 3) % 60);
  return a;
}

int write(const std::string& prefix, int shards) {
  io::BundleWriter w(prefix, shards);
  int k = 0;
  for (int number = 1; number <= 23; ++number) {
    const auto type = static_cast<graph::DType>(number);
    if (graph::dtype_size(type) == 0 && type != graph::DType::kString) continue;
    const std::string name = cat("t/", type);
    w.add(name, pattern(type, {3, 2}), k++ % shards);
    w.add(name + "/empty", pattern(type, {0, 4}), k++ % shards);
    w.add(name + "/scalar", pattern(type, {}), k++ % shards);
  }
  const Array whole = pattern(graph::DType::kInt32, {5, 4});
  for (const auto& [start, length] : {std::pair<int64_t, int64_t>{0, 2}, {2, 3}}) {
    const io::TensorSlice slice{{start, length}, {0, 4}};
    const Array part = io::extract_slice(whole, slice);
    w.add_slice("sliced", {5, 4}, slice, io::TensorView::of(part), k++ % shards);
  }
  w.finish();
  return 0;
}

int list(const std::string& prefix) {
  const io::BundleReader r(prefix);
  r.verify();
  for (const auto& [name, e] : r.entries()) {
    const Array a = r.read(name);
    std::string bytes;
    if (a.dtype() == graph::DType::kString)
      for (const std::string& s : a.string_values()) bytes += hex(s.data(), s.size()) + ",";
    else
      bytes = hex(a.data(), a.bytes());
    std::cout << name << ' ' << cat(a.dtype()) << ' ' << graph::dims_string(a.dims()) << ' ' << bytes << '\n';
  }
  return 0;
}

// A saver of the DSL over partitioned and whole variables: what TensorFlow must be able to restore, and back.
int save_variables(const std::string& prefix, int parts, const std::string& from) {
  using namespace sluice::dsl;
  Graph g;
  Variable w = get_variable(g, "w", {3, 2}, {.initializer = ones_initializer()});
  Variable step =
      get_variable(g, "global_step", {}, {.dtype = DType::kInt64, .initializer = zeros_initializer()});
  PartitionedVariable e = get_variable(g, "emb", {7, 3}, fixed_size_partitioner(parts));
  Tensor noise = random_uniform(g, {2});
  train::Saver saver(g, {.num_shards = 2});
  runtime::Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  s.run({noise});
  if (!from.empty()) saver.restore(s, from);
  std::cout << saver.save(s, prefix, 3) << '\n';
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 2 ? argv[1] : "";
  try {
    if (what == "write" && argc == 4) return write(argv[2], std::stoi(argv[3]));
    if (what == "list" && argc == 3) return list(argv[2]);
    if (what == "save" && argc >= 4)
      return save_variables(argv[2], std::stoi(argv[3]), argc > 4 ? argv[4] : "");
  } catch (const std::exception& e) {
    std::cerr << "checkpoint_tool: " << e.what() << '\n';
    return 1;
  }
  std::cerr << "usage: checkpoint_tool write PREFIX SHARDS | list PREFIX | save PREFIX PARTS [FROM]\n";
  return 2;
}
