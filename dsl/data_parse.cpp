// parse_example and parse_single_example: features as the inputs and attributes of TensorFlow's ops.

#include "dsl/call.h"
#include "dsl/data.h"
#include "dsl/require.h"

namespace sluice::dsl::data {
namespace {

using Kind = FeatureConfig::Kind;

struct Features {
  std::vector<const FeatureConfig*> sparse, dense;
  std::vector<DType> sparse_types, dense_types;
  std::vector<Shape> dense_shapes;
};

Features sorted(const std::vector<FeatureConfig>& features, Loc loc) {
  SLUICE_REQUIRE_AT(loc, !features.empty(), Code::kInvalidArgument, "Missing features.");
  Features all;
  for (const FeatureConfig& f : features) {
    if (f.kind == Kind::kVarLen) {
      all.sparse.push_back(&f);
      all.sparse_types.push_back(f.dtype);
      continue;
    }
    Dims d = f.shape;
    if (f.kind == Kind::kFixedLenSequence) d.insert(d.begin(), graph::kUnknownDim);
    all.dense.push_back(&f);
    all.dense_types.push_back(f.dtype);
    all.dense_shapes.emplace_back(std::move(d));
  }
  return all;
}

const std::string& key(const FeatureConfig& f) { return f.key.empty() ? f.name : f.key; }

std::vector<Output> default_constants(const Call& c, const Features& all, Loc loc) {
  std::vector<Output> out;
  for (const FeatureConfig* f : all.dense) {
    const bool sequence = f->kind == Kind::kFixedLenSequence;
    if (!f->default_value) {
      // No elements: required, or padded with zeros.
      const Array none = runtime::Array(f->dtype, {0});
      out.push_back(c.constant(none.to_literal(), "dense_default"));
      continue;
    }
    const Array& v = *f->default_value;
    SLUICE_REQUIRE_AT(loc,
                      v.dtype() == f->dtype && v.elements() == (sequence ? 1 : graph::num_elements(f->shape)),
                      Code::kInvalidArgument, "The default of feature ", f->name, " is ", v.dtype(),
                      graph::dims_string(v.dims()), "; the feature is ", f->dtype,
                      sequence ? std::string(", padded with one element") : graph::dims_string(f->shape));
    out.push_back(
        c.constant((sequence ? v.reshaped({}) : v.reshaped(f->shape)).to_literal(), "dense_default"));
  }
  return out;
}

std::map<std::string, Tensor> by_name(Node& n, const Features& all) {
  std::map<std::string, Tensor> out;
  const int sparse = static_cast<int>(all.sparse.size());
  for (int i = 0; i < sparse; ++i) {
    const std::string& name = all.sparse[static_cast<size_t>(i)]->name;
    out[name + "/indices"] = n.output(i);
    out[name + "/values"] = n.output(sparse + i);
    out[name + "/dense_shape"] = n.output(2 * sparse + i);
  }
  for (size_t i = 0; i < all.dense.size(); ++i)
    out[all.dense[i]->name] = n.output(3 * sparse + static_cast<int>(i));
  return out;
}

}  // namespace

std::map<std::string, Tensor> parse_example(const Operand& serialized,
                                            const std::vector<FeatureConfig>& features, const Tensor& names,
                                            const std::string& name, Loc loc) {
  const Features all = sorted(features, loc);
  Graph& g = graph_of({&serialized});
  Call c(g, name, "ParseExample", loc);
  std::vector<Output> in{c.in(serialized, "serialized", DType::kString)};
  in.push_back(names ? names.output()
                     : c.constant(runtime::Array(DType::kString, {0}).to_literal(), "names"));
  for (const auto* list : {&all.sparse, &all.dense})
    for (const FeatureConfig* f : *list)
      in.push_back(c.constant(Literal::scalar(key(*f)), list == &all.sparse ? "sparse_keys" : "dense_keys"));
  for (Output o : default_constants(c, all, loc)) in.push_back(o);
  Node& n = c.make("ParseExample", std::move(in),
                   {{"Nsparse", static_cast<int64_t>(all.sparse.size())},
                    {"Ndense", static_cast<int64_t>(all.dense.size())},
                    {"sparse_types", all.sparse_types},
                    {"Tdense", all.dense_types},
                    {"dense_shapes", all.dense_shapes}});
  return by_name(n, all);
}

std::map<std::string, Tensor> parse_single_example(const Operand& serialized,
                                                   const std::vector<FeatureConfig>& features,
                                                   const std::string& name, Loc loc) {
  const Features all = sorted(features, loc);
  Graph& g = graph_of({&serialized});
  Call c(g, name, "ParseSingleExample", loc);
  std::vector<std::string> sparse_keys, dense_keys;
  for (const FeatureConfig* f : all.sparse) sparse_keys.push_back(key(*f));
  for (const FeatureConfig* f : all.dense) dense_keys.push_back(key(*f));
  std::vector<Output> in{c.in(serialized, "serialized", DType::kString)};
  for (Output o : default_constants(c, all, loc)) in.push_back(o);
  Node& n = c.make("ParseSingleExample", std::move(in),
                   {{"num_sparse", static_cast<int64_t>(all.sparse.size())},
                    {"sparse_keys", std::move(sparse_keys)},
                    {"dense_keys", std::move(dense_keys)},
                    {"sparse_types", all.sparse_types},
                    {"Tdense", all.dense_types},
                    {"dense_shapes", all.dense_shapes}});
  return by_name(n, all);
}

}  // namespace sluice::dsl::data
