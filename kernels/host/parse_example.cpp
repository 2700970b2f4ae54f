// ParseExample, ParseExampleV2 and ParseSingleExample on runtime/data's parser.

#include <cstring>

#include "kernels/host/input_array.h"
#include "kernels/reference/register.h"
#include "runtime/data/copy_bytes.h"
#include "runtime/data/example_parser.h"

namespace sluice::kernels {
namespace {

using runtime::data::Element;
using runtime::data::ExampleParser;
using runtime::data::ExampleSpec;

std::vector<runtime::data::DenseFeature> dense_features(const KernelSpec& spec) {
  const auto types = spec.attr_or<std::vector<DType>>("Tdense", {});
  const auto shapes = spec.attr_or<std::vector<graph::Shape>>("dense_shapes", {});
  std::vector<runtime::data::DenseFeature> dense;
  for (size_t i = 0; i < types.size(); ++i) {
    Dims d = shapes.at(i).dims();
    const bool variable = !d.empty() && d[0] < 0;
    if (variable) d.erase(d.begin());
    dense.push_back({"", types[i], std::move(d), variable});
  }
  return dense;
}

std::vector<runtime::data::SparseFeature> sparse_features(const KernelSpec& spec) {
  std::vector<runtime::data::SparseFeature> sparse;
  for (DType t : spec.attr_or<std::vector<DType>>("sparse_types", {})) sparse.push_back({"", t});
  return sparse;
}

// A default without elements says that there is none.
std::vector<Array> defaults(const KernelRun& r, int first, size_t count) {
  std::vector<Array> all;
  for (size_t i = 0; i < count; ++i) {
    Array a = input_array(r, first + static_cast<int>(i));
    all.push_back(a.elements() == 0 ? Array() : std::move(a));
  }
  return all;
}

void give(KernelRun& r, Element& e) {
  for (int i = 0; i < r.num_outputs(); ++i) {
    Array& from = e[static_cast<size_t>(i)];
    if (r.out_is_array(i))
      r.out_array(i) = std::move(from);
    else if (from.bytes() > 0)
      runtime::data::copy_bytes(r.out_data(i), from.data(), from.bytes());
  }
}

template <class Features>
void name(Features& features, const std::vector<std::string>& keys, const char* what) {
  SLUICE_REQUIRE(keys.size() == features.size(), Code::kInvalidArgument, "Expected ", features.size(), " ",
                 what, ", got ", keys.size());
  for (size_t i = 0; i < keys.size(); ++i) features[i].key = keys[i];
}

void parse(KernelRun& r, ExampleSpec spec, int first_default) {
  const std::vector<Array> fallback = defaults(r, first_default, spec.dense.size());
  const ExampleParser parser(std::move(spec));
  Element e;
  if (r.in_dims(0).empty())
    parser.parse_single(scalar_string(r, 0), fallback, e);
  else
    parser.parse(r.in_array(0).string_values(), r.in_array(1).string_values(), fallback, e);
  give(r, e);
}

// (serialized, names, sparse_keys…, dense_keys…, dense_defaults…)
BoundFn parse_example(const KernelSpec& spec) {
  const ExampleSpec features{dense_features(spec), sparse_features(spec), {}};
  return [features](KernelRun& r) {
    ExampleSpec named = features;
    int input = 2;
    for (auto& f : named.sparse) f.key = scalar_string(r, input++);
    for (auto& f : named.dense) f.key = scalar_string(r, input++);
    parse(r, std::move(named), input);
  };
}

// (serialized, names, sparse_keys, dense_keys, ragged_keys, dense_defaults…)
BoundFn parse_example_v2(const KernelSpec& spec) {
  ExampleSpec features{dense_features(spec), sparse_features(spec), {}};
  const auto values = spec.attr_or<std::vector<DType>>("ragged_value_types", {}),
             splits = spec.attr_or<std::vector<DType>>("ragged_split_types", {});
  for (size_t i = 0; i < values.size(); ++i) features.ragged.push_back({"", values[i], splits.at(i)});
  return [features](KernelRun& r) {
    ExampleSpec named = features;
    name(named.sparse, r.in_array(2).string_values(), "sparse keys");
    name(named.dense, r.in_array(3).string_values(), "dense keys");
    name(named.ragged, r.in_array(4).string_values(), "ragged keys");
    SLUICE_REQUIRE(named.ragged.empty() || !r.in_dims(0).empty(), Code::kUnimplemented,
                   "Ragged features of one record: parse a vector of records");
    parse(r, std::move(named), 5);
  };
}

// (serialized, dense_defaults…)
BoundFn parse_single_example(const KernelSpec& spec) {
  ExampleSpec features{dense_features(spec), sparse_features(spec), {}};
  name(features.sparse, spec.attr_or<std::vector<std::string>>("sparse_keys", {}), "sparse keys");
  name(features.dense, spec.attr_or<std::vector<std::string>>("dense_keys", {}), "dense keys");
  return [features](KernelRun& r) { parse(r, features, 1); };
}

}  // namespace

void register_host_parse_example(KernelRegistry& r) {
  add_bound(r, "ParseExample", parse_example);
  add_bound(r, "ParseExampleV2", parse_example_v2);
  add_bound(r, "ParseSingleExample", parse_single_example);
}

}  // namespace sluice::kernels
