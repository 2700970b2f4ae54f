// Our half of input_pipeline.py: prints each chain's elements over the files that script wrote.
// Usage: input_tool DIR

#include <cstdio>
#include <string>

#include "dsl/data.h"

namespace {

using namespace sluice;
using dsl::data::Array;
using dsl::data::Dataset;
using dsl::data::Element;
using graph::DType;
namespace data = dsl::data;

template <class T>
void print(const Array& a, const char* format) {
  for (T v : a.as<T>()) std::printf(format, v);
}

// "chain dtype dims v v v; dtype dims …"
void show(const std::string& name, const Dataset& d, int limit = 200) {
  data::Pipeline p = d.iterate();
  Element e;
  for (int i = 0; i < limit && p.next(e); ++i) {
    std::printf("%s", name.c_str());
    for (const Array& a : e.values) {
      std::printf(" | %s", std::string(graph::dtype_name(a.dtype())).c_str());
      for (int64_t n : a.dims()) std::printf(" %lld", static_cast<long long>(n));
      std::printf(" :");
      if (a.dtype() == DType::kString)
        for (const std::string& s : a.string_values()) {
          std::printf(" x");
          for (unsigned char c : s) std::printf("%02x", c);
        }
      else if (a.dtype() == DType::kFloat)
        print<float>(a, " %.9g");
      else if (a.dtype() == DType::kInt32)
        print<int32_t>(a, " %d");
      else
        for (int64_t v : a.as<int64_t>()) std::printf(" %lld", static_cast<long long>(v));
    }
    std::printf("\n");
  }
}

Dataset ones(int64_t from, int64_t to) {
  return data::range(from, to).map(
      [](Element& in, Element& out) {
        const int64_t n = std::as_const(in[0]).as<int64_t>()[0];
        for (int64_t& v : out.make<int64_t>(0, {n})) v = n;
      },
      {.output = {{"n", DType::kInt64, {-1}}}});
}

void show_all(const std::string& dir) {
  const data::ElementSpec number{{"", DType::kInt64, {}}};
  const auto upto = [](const Element& e) { return data::range(0, e[0].as<int64_t>()[0]); };
  for (int cycle : {1, 2, 3, 5})
    for (int block : {1, 2, 4})
      for (bool parallel : {false, true})
        show(cat(parallel ? "parallel_" : "", "interleave_", cycle, "_", block),
             data::range(0, 9).interleave(upto, number,
                                          {.cycle = cycle, .block = block, .parallel = parallel}));
  show("batch", data::range(0, 11).batch(4));
  show("batch_drop", data::range(0, 11).batch(4, true));
  show("padded", ones(0, 7).padded_batch({.size = 3}));
  show("padded_to",
       ones(0, 5).padded_batch(
           {.size = 2, .shapes = {graph::Shape{6}}, .padding_values = {Array::scalar<int64_t>(-1)}}));
  show("shard", data::range(0, 17).shard(5, 3));
  show("zip", data::zip({data::range(0, 5), data::range(10, 100, 7)}));
  show("range_down", data::range(10, -3, -4));
  show("repeat_take_skip", data::range(0, 3).repeat(4).skip(2).take(7));
  show("concatenate", data::range(0, 3).concatenate(data::range(7, 9)).repeat(2));
  show("lines", data::text_lines({dir + "/lines0", dir + "/lines1"}));
  std::vector<data::CsvColumn> columns{{"", DType::kInt32, {}},
                                       {"", DType::kFloat, Array::scalar(7.5f)},
                                       {"", DType::kString, Array::strings({}, {"d"})}};
  show("csv", data::csv({dir + "/csv"}, columns, {.header = true, .na_value = "NA"}));
  const auto records = [&](const std::string& name,
                           runtime::io::Compression c = runtime::io::Compression::kNone) {
    return data::tf_records({dir + "/" + name}, {.compression = c});
  };
  show("records", records("records"));
  show("records_gzip", records("records_gzip", runtime::io::Compression::kGzip));
  show("records_zlib", records("records_zlib", runtime::io::Compression::kZlib));
  const std::vector<data::FeatureConfig> features{
      data::fixed_len("f", {2}, DType::kFloat, Array::from<float>({2}, {8, 9})),
      data::fixed_len_sequence("s", {}, DType::kInt64), data::var_len("v", DType::kString),
      data::fixed_len("w", {}, DType::kString)};
  show("parse_batch", records("records").batch(4).parse_example(features));
  show("parse_single", records("records").parse_example(features, 2));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: input_tool DIR\n");
    return 2;
  }
  try {
    show_all(argv[1]);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
