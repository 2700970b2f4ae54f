#include "runtime/data/sources.h"

#include <glob.h>

#include <algorithm>
#include <cstring>

#include "runtime/data/copy_bytes.h"
#include "runtime/data/idx.h"
#include "runtime/data/state.h"

namespace sluice::runtime::data {
namespace {

ElementSpec name_all(ElementSpec spec, const std::vector<std::string>& names, const char* who) {
  SLUICE_REQUIRE(names.empty() || names.size() == spec.size(), Code::kInvalidArgument, who, ": ",
                 names.size(), " names for ", spec.size(), " components");
  for (size_t i = 0; i < names.size(); ++i) spec[i].name = names[i];
  return spec;
}

ElementSpec slices_spec(const std::vector<Array>& arrays, const std::vector<std::string>& names) {
  SLUICE_REQUIRE(!arrays.empty(), Code::kInvalidArgument, "tensor_slices needs an array at least");
  ElementSpec spec;
  for (const Array& a : arrays) {
    SLUICE_REQUIRE(a.rank() >= 1, Code::kInvalidArgument,
                   "Unbatching a tensor is only supported for rank >= 1: tensor_slices got a scalar");
    SLUICE_REQUIRE(a.dims()[0] == arrays[0].dims()[0], Code::kInvalidArgument,
                   "tensor_slices: the arrays have ", arrays[0].dims()[0], " and ", a.dims()[0],
                   " rows; all must have the same number");
    spec.push_back({"", a.dtype(), Shape(Dims(a.dims().begin() + 1, a.dims().end()))});
  }
  return name_all(std::move(spec), names, "tensor_slices");
}

/// Counts through an indexed dataset.
class IndexedIterator final : public Iterator {
 public:
  explicit IndexedIterator(const Dataset& d) : d_(d), size_(d.cardinality()) {}
  bool next(Element& out, const CancelToken&) override {
    if (at_ >= size_) return false;
    d_.read(at_++, out);
    return true;
  }
  void save(StateWriter& out) override { out.put(at_); }
  void restore(StateReader& in) override { at_ = in.get(0, size_); }

 private:
  const Dataset& d_;
  int64_t at_ = 0, size_;
};

class SlicesDataset final : public Dataset {
 public:
  SlicesDataset(std::vector<Array> arrays, const std::vector<std::string>& names)
      : Dataset(slices_spec(arrays, names), {}), arrays_(std::move(arrays)) {
    for (size_t i = 0; i < arrays_.size(); ++i) {
      rows_.push_back(arrays_[i].dims()[0] ? arrays_[i].elements() / arrays_[i].dims()[0] : 0);
      dims_.emplace_back(arrays_[i].dims().begin() + 1, arrays_[i].dims().end());
    }
  }
  std::unique_ptr<Iterator> iterate(const IterateContext&) const override {
    return std::make_unique<IndexedIterator>(*this);
  }
  std::string describe() const override {
    return cat("Slices", spec_string(spec()), "[", cardinality(), "]");
  }
  int64_t cardinality() const override { return arrays_[0].dims()[0]; }
  bool indexed() const override { return true; }
  void read(int64_t index, Element& out) const override {
    out.origin.file.reset();
    out.values.resize(arrays_.size());
    for (size_t i = 0; i < arrays_.size(); ++i) {
      const Array& from = arrays_[i];
      make_writable(out[i], from.dtype(), dims_[i]);
      const auto n = static_cast<size_t>(rows_[i]), first = static_cast<size_t>(index) * n;
      if (from.dtype() == DType::kString) {
        std::copy_n(from.string_values().begin() + static_cast<long>(first), n,
                    out[i].string_values().begin());
      } else if (n > 0) {
        const size_t bytes = n * graph::dtype_size(from.dtype());
        copy_bytes(out[i].data(), static_cast<const char*>(from.data()) + static_cast<size_t>(index) * bytes,
                   bytes);
      }
    }
  }

 private:
  const std::vector<Array> arrays_;
  std::vector<int64_t> rows_;  // elements of a row
  std::vector<Dims> dims_;     // its shape
};

ElementSpec whole_spec(const std::vector<Array>& arrays, const std::vector<std::string>& names) {
  SLUICE_REQUIRE(!arrays.empty(), Code::kInvalidArgument, "tensors needs an array at least");
  ElementSpec spec;
  for (const Array& a : arrays) spec.push_back({"", a.dtype(), Shape(a.dims())});
  return name_all(std::move(spec), names, "tensors");
}

class TensorsDataset final : public Dataset {
 public:
  TensorsDataset(std::vector<Array> arrays, const std::vector<std::string>& names)
      : Dataset(whole_spec(arrays, names), {}), arrays_(std::move(arrays)) {}
  std::unique_ptr<Iterator> iterate(const IterateContext&) const override {
    return std::make_unique<IndexedIterator>(*this);
  }
  std::string describe() const override { return cat("Tensors", spec_string(spec())); }
  int64_t cardinality() const override { return 1; }
  bool indexed() const override { return true; }
  void read(int64_t, Element& out) const override {
    out.origin.file.reset();
    out.values = arrays_;  // shared
  }

 private:
  const std::vector<Array> arrays_;
};

class RangeDataset final : public Dataset {
 public:
  RangeDataset(int64_t start, int64_t stop, int64_t step)
      : Dataset({{"", DType::kInt64, Shape::scalar()}}, {}), start_(start), stop_(stop), step_(step) {
    SLUICE_REQUIRE(step != 0, Code::kInvalidArgument, "step must be a non-zero integer.");
    __extension__ using Wide = __int128;
    const Wide span = static_cast<Wide>(stop) - start, by = step;
    if ((span > 0) == (by > 0) && span != 0)
      size_ = static_cast<int64_t>((span + by - (by > 0 ? 1 : -1)) / by);
  }
  std::unique_ptr<Iterator> iterate(const IterateContext&) const override {
    return std::make_unique<IndexedIterator>(*this);
  }
  std::string describe() const override { return cat("Range(", start_, ",", stop_, ",", step_, ")"); }
  int64_t cardinality() const override { return size_; }
  bool indexed() const override { return true; }
  void read(int64_t index, Element& out) const override {
    out.origin.file.reset();
    out.make<int64_t>(0, {})[0] = start_ + index * step_;
  }

 private:
  const int64_t start_, stop_, step_;
  int64_t size_ = 0;
};

class GeneratorDataset final : public Dataset {
 public:
  GeneratorDataset(ElementSpec spec, std::function<GenerateFn()> start)
      : Dataset(std::move(spec), {}), start_(std::move(start)) {
    SLUICE_REQUIRE(start_ != nullptr, Code::kInvalidArgument, "generator needs a function");
    SLUICE_REQUIRE(!this->spec().empty(), Code::kInvalidArgument, "generator needs the spec of its elements");
  }

  class It final : public Iterator {
   public:
    explicit It(const GeneratorDataset& d) : d_(d) {}
    bool next(Element& out, const CancelToken& cancel) override {
      if (ended_) return false;
      if (!fn_) fn_ = d_.start_();
      out.origin = {};
      if (out.size() > d_.spec().size()) out.values.resize(d_.spec().size());
      bool more = false;
      try {
        more = fn_(out, cancel);
      } catch (const Error& e) {  // a call like others, unless the wait was cancelled
        if (e.code() != Code::kCancelled && e.code() != Code::kDeadlineExceeded) ++calls_;
        throw;
      } catch (...) {
        ++calls_;
        throw;
      }
      if (!more) {
        ended_ = true;
        return false;
      }
      ++calls_;
      check_element(d_.spec(), out, "The generator");
      return true;
    }
    void save(StateWriter& out) override {
      out.put(calls_);
      out.put(ended_);
    }
    void restore(StateReader& in) override {
      const int64_t calls = in.get(0, kCountLimit);
      ended_ = in.get(0, 1) != 0;
      if (ended_) {
        calls_ = calls;
        return;
      }
      fn_ = d_.start_();
      const CancelToken never = CancelToken::none();
      Element e;
      for (; calls_ < calls; ++calls_) {
        bool more = true;
        try {
          more = fn_(e, never);
        } catch (...) {  // it failed the first time as well
        }
        SLUICE_REQUIRE(more, Code::kInvalidArgument, "The generator ended after ", calls_,
                       " elements; the saved position is ", calls);
      }
    }

   private:
    const GeneratorDataset& d_;
    GenerateFn fn_;
    int64_t calls_ = 0;
    bool ended_ = false;
  };

  std::unique_ptr<Iterator> iterate(const IterateContext&) const override {
    return std::make_unique<It>(*this);
  }
  std::string describe() const override { return cat("Generator", spec_string(spec())); }

 private:
  const std::function<GenerateFn()> start_;
};

}  // namespace

DatasetPtr tensor_slices(std::vector<Array> arrays, std::vector<std::string> names) {
  return std::make_shared<SlicesDataset>(std::move(arrays), names);
}

DatasetPtr tensors(std::vector<Array> arrays, std::vector<std::string> names) {
  return std::make_shared<TensorsDataset>(std::move(arrays), names);
}

DatasetPtr range(int64_t start, int64_t stop, int64_t step) {
  return std::make_shared<RangeDataset>(start, stop, step);
}

DatasetPtr generator(ElementSpec spec, std::function<GenerateFn()> start) {
  return std::make_shared<GeneratorDataset>(std::move(spec), std::move(start));
}

std::vector<std::string> match_files(const std::string& pattern) {
  glob_t found{};
  const int rc = ::glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<std::string> files;
  for (size_t i = 0; rc == 0 && i < found.gl_pathc; ++i) files.emplace_back(found.gl_pathv[i]);
  ::globfree(&found);
  SLUICE_REQUIRE(!files.empty(), Code::kNotFound, "No files matched pattern: ", pattern);
  return files;
}

DatasetPtr idx(const std::vector<std::string>& files, std::vector<std::string> names) {
  std::vector<Array> arrays;
  for (const std::string& file : files) {
    const IdxData data = read_idx(file);
    Array a(DType::kUint8, data.dims);
    std::copy(data.values.begin(), data.values.end(), a.as<uint8_t>().begin());
    arrays.push_back(std::move(a));
  }
  return tensor_slices(std::move(arrays), std::move(names));
}

}  // namespace sluice::runtime::data
