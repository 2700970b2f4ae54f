// Iterators over input pipelines (runtime/data). A handle is no value: a kernel finds the iterator by the
// node that makes the handle, when the plan is built.

#include <cstring>

#include "kernels/reference/common.h"
#include "kernels/reference/register.h"
#include "runtime/data/iterator_resource.h"
#include "runtime/session.h"

namespace sluice::kernels {
namespace {

using graph::Node;
using runtime::data::Component;
using runtime::data::DatasetPtr;
using runtime::data::Element;
using runtime::data::ElementSpec;
using runtime::data::IteratorResource;

void made_by_the_plan(KernelRun&) {}

const Node& maker(const KernelSpec& spec, int input) {
  const Node* n = spec.node->input(input).node;
  while (n->has(graph::kViewOf0)) n = n->input(0).node;
  SLUICE_REQUIRE(n->num_inputs() == 0 && n->find_attr("output_types"), Code::kUnimplemented,
                 "The handle comes from '", n->name(), "' (op: '", n->op(),
                 "'); it must come from an iterator or dataset op of the same graph");
  return *n;
}

std::string shared_name(const Node& n) {
  std::string name = n.attr_or<std::string>("shared_name", "");
  return name.empty() ? n.name() : name;
}

ElementSpec declared(const Node& n) {
  const auto types = n.attr<std::vector<DType>>("output_types");
  const auto shapes = n.attr<std::vector<graph::Shape>>("output_shapes");
  ElementSpec spec;
  for (size_t i = 0; i < types.size(); ++i)
    spec.push_back({"", types[i], i < shapes.size() ? shapes[i] : graph::Shape()});
  return spec;
}

// The pipeline behind a dataset node or one-shot iterator.
DatasetPtr find_pipeline(runtime::ResourceManager& session, const Node& n) {
  const std::string name = shared_name(n);
  DatasetPtr d = runtime::data::attached(session, n.graph(), name);
  SLUICE_REQUIRE(d != nullptr, Code::kFailedPrecondition, "Iterator '", name,
                 "' has no input pipeline in this session: pipelines are C++ code, which graph files do not "
                 "hold. Attach one before the first run, data::attach(session, \"",
                 name, "\", dataset), with elements ", spec_string(declared(n)));
  const ElementSpec want = declared(n);
  bool fits = want.size() == d->spec().size();
  for (size_t i = 0; fits && i < want.size(); ++i)
    fits = want[i].dtype == d->spec()[i].dtype && want[i].shape.compatible(d->spec()[i].shape);
  SLUICE_REQUIRE(fits, Code::kInvalidArgument, "The pipeline attached to iterator '", name, "' has elements ",
                 spec_string(d->spec()), ", the graph declares ", spec_string(want));
  return d;
}

BoundFn make_iterator(const KernelSpec& spec) {
  const Node *dataset = &maker(spec, 0), *iterator = &maker(spec, 1);
  auto resource = IteratorResource::of(*spec.resources, shared_name(*iterator));
  return [dataset, resource](KernelRun& r) {
    const runtime::CancelToken never = runtime::CancelToken::none();
    resource->initialize(find_pipeline(*r.state().resources, *dataset),
                         r.state().cancel ? *r.state().cancel : never);
  };
}

void give(KernelRun& r, Element& e) {
  SLUICE_REQUIRE(static_cast<int>(e.size()) == r.num_outputs(), Code::kInvalidArgument,
                 "Number of components does not match: expected ", r.num_outputs(), " types but got ",
                 e.size(), ".");
  for (int i = 0; i < r.num_outputs(); ++i) {
    Array& from = e[static_cast<size_t>(i)];
    const DType want = graph::base_dtype(r.out_dtype(i));
    SLUICE_REQUIRE(from.dtype() == want, Code::kInvalidArgument, "Data type mismatch at component ", i,
                   ": expected ", want, " but got ", from.dtype(), ".");
    if (r.out_is_array(i)) {
      // Handed over, not shared: the iterator will not write into it again.
      r.out_array(i) = std::move(from);
      from = Array();
      continue;
    }
    SLUICE_REQUIRE(from.dims() == r.out_dims(i), Code::kInvalidArgument, "Incompatible shapes at component ",
                   i, ": expected ", dims_string(r.out_dims(i)), " but got ", dims_string(from.dims()), ".");
    if (from.bytes() > 0) std::memcpy(r.out_data(i), from.data(), from.bytes());
  }
}

BoundFn get_next(const KernelSpec& spec) {
  const Node* iterator = &maker(spec, 0);
  auto resource = IteratorResource::of(*spec.resources, shared_name(*iterator));
  const bool one_shot = iterator->find_attr("dataset_factory") != nullptr;
  return [iterator, resource, one_shot](KernelRun& r) {
    const runtime::CancelToken never = runtime::CancelToken::none();
    std::function<DatasetPtr()> begin;
    if (one_shot) begin = [&] { return find_pipeline(*r.state().resources, *iterator); };
    const bool more =
        resource->next(r.state().cancel ? *r.state().cancel : never, begin, [&](Element& e) { give(r, e); });
    SLUICE_REQUIRE(more, Code::kOutOfRange, "End of sequence");
  };
}

}  // namespace

void register_host_iterator(KernelRegistry& r) {
  for (const char* op : {"Iterator", "IteratorV2", "OneShotIterator", "AttachedDataset"})
    add(r, op, made_by_the_plan);
  add_bound(r, "MakeIterator", make_iterator);
  for (const char* op : {"IteratorGetNext", "IteratorGetNextSync"}) add_bound(r, op, get_next);
}

}  // namespace sluice::kernels
