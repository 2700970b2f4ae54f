#include "runtime/data/dataset.h"

#include <atomic>
#include <random>

#include "runtime/data/state.h"

namespace sluice::runtime::data {
namespace {

constexpr int64_t kStateVersion = 1;

void number(const Dataset& d, std::map<const Dataset*, uint64_t>& ordinal) {
  for (const DatasetPtr& in : d.inputs()) number(*in, ordinal);
  ordinal.emplace(&d, ordinal.size() + 1);
}

}  // namespace

std::string spec_string(const ElementSpec& spec) {
  std::string s = "(";
  for (size_t i = 0; i < spec.size(); ++i)
    s += cat(i ? ", " : "", spec[i].name, spec[i].name.empty() ? "" : ": ", spec[i].dtype, spec[i].shape);
  return s + ")";
}

std::string Origin::str() const {
  return file ? cat("record ", record, " at offset ", offset, " of ", *file) : std::string();
}

bool exclusive(const Array& a) {
  if (!a.unique()) return false;
#if defined(__SANITIZE_THREAD__)
  const Array counted = a;  // ThreadSanitizer sees no fences; counting up orders as well
#else
  std::atomic_thread_fence(std::memory_order_acquire);  // unique() itself orders nothing
#endif
  return true;
}

void make_writable(Array& slot, DType dtype, const Dims& dims) {
  if (slot.dtype() == dtype && slot.dims() == dims && exclusive(slot)) return;
  slot = Array(dtype, dims);
}

Array& Element::make(size_t i, DType dtype, const Dims& dims) {
  if (values.size() <= i) values.resize(i + 1);
  make_writable(values[i], dtype, dims);
  return values[i];
}

size_t Element::bytes() const {
  size_t n = 0;
  for (const Array& a : values) n += a.bytes();
  return n;
}

void check_element(const ElementSpec& spec, const Element& element, std::string_view who) {
  SLUICE_REQUIRE(element.size() == spec.size(), Code::kInvalidArgument, who, " gave ", element.size(),
                 " components where ", spec_string(spec), " was declared");
  for (size_t i = 0; i < spec.size(); ++i) {
    const Array& a = element[i];
    SLUICE_REQUIRE(a.dtype() == spec[i].dtype, Code::kInvalidArgument, who, ": component ", i, " (",
                   spec[i].name, ") is ", a.dtype(), " where ", spec[i].dtype, " was declared");
    bool fits = !spec[i].shape.known_rank() || spec[i].shape.rank() == a.rank();
    if (fits && spec[i].shape.known_rank())
      for (size_t d = 0; d < a.dims().size(); ++d)
        fits &= spec[i].shape.dims()[d] < 0 || spec[i].shape.dims()[d] == a.dims()[d];
    SLUICE_REQUIRE(fits, Code::kInvalidArgument, who, ": component ", i, " (", spec[i].name, ") has shape ",
                   graph::dims_string(a.dims()), " where ", spec[i].shape, " was declared");
  }
}

void rethrow_at(const Error& error, const Origin& origin) {
  if (!origin.file || error.message().find(*origin.file) != std::string::npos) throw error;
  throw Error(error.code(), cat(error.message(), " (", origin.str(), ")"), error.node(), error.loc());
}

bool Dataset::repeatable() const {
  for (const DatasetPtr& in : inputs_)
    if (!in->repeatable()) return false;
  return true;
}

void Dataset::read(int64_t, Element&) const { SLUICE_CHECK(false, describe(), " cannot be read by number"); }

std::string pipeline_string(const Dataset& dataset) {
  if (dataset.inputs().empty()) return dataset.describe();
  if (dataset.inputs().size() == 1)
    return cat(pipeline_string(*dataset.inputs()[0]), " > ", dataset.describe());
  std::string s = "[";
  for (size_t i = 0; i < dataset.inputs().size(); ++i)
    s += cat(i ? " | " : "", pipeline_string(*dataset.inputs()[i]));
  return cat(s, "] > ", dataset.describe());
}

Pipeline::Pipeline(DatasetPtr dataset) : dataset_(std::move(dataset)) {
  std::random_device device;
  root_ = fresh((static_cast<uint64_t>(device()) << 32) | device(), shared_);
}

std::unique_ptr<Iterator> Pipeline::fresh(uint64_t seed, std::shared_ptr<SharedState>& shared) const {
  shared = std::make_shared<SharedState>();
  shared->seed = seed;
  number(*dataset_, shared->ordinal);
  return dataset_->iterate({0, shared});
}

bool Pipeline::next(Element& out, const CancelToken& cancel) { return root_->next(out, cancel); }

std::string Pipeline::save() {
  StateWriter out;
  out.put(kStateVersion);
  out.put_text(pipeline_string(*dataset_));
  out.put_u64(shared_->seed);
  root_->save(out);
  return out.release();
}

void Pipeline::restore(std::string_view state) {
  StateReader in(state);
  SLUICE_REQUIRE(in.get() == kStateVersion, Code::kInvalidArgument,
                 "The saved position of an input pipeline has an unknown version");
  const std::string saved = in.get_text(), here = pipeline_string(*dataset_);
  SLUICE_REQUIRE(saved == here, Code::kInvalidArgument,
                 "The saved position belongs to another input pipeline.\n  saved: ", saved,
                 "\n  here:  ", here);
  const uint64_t seed = in.get_u64();
  std::shared_ptr<SharedState> shared;
  std::unique_ptr<Iterator> root = fresh(seed, shared);
  root->restore(in);
  if (!in.at_end()) StateReader::fail("bytes are left over");
  root_ = std::move(root);
  shared_ = std::move(shared);
}

}  // namespace sluice::runtime::data
