// batch and padded_batch. Elements of known shape are copied straight into their row; a batch that an error
// or a cancelled wait interrupts is gone on with by the next call.

#include <algorithm>
#include <cstring>

#include "runtime/data/copy_bytes.h"
#include "runtime/data/state.h"
#include "runtime/data/steps.h"

namespace sluice::runtime::data {
namespace {

ElementSpec batched(const ElementSpec& spec, int64_t size, bool fixed) {
  ElementSpec out = spec;
  for (Component& c : out)
    if (c.shape.known_rank()) c.shape = Shape{fixed ? size : graph::kUnknownDim}.concat(c.shape);
  return out;
}

int64_t batches(int64_t elements, int64_t size, bool drop) {
  if (elements < 0) return elements;
  return drop ? elements / size : (elements + size - 1) / size;
}

Dims with_rows(int64_t rows, const Dims& dims) {
  Dims d{rows};
  d.insert(d.end(), dims.begin(), dims.end());
  return d;
}

// Strings that nobody else holds change places: no bytes move and both sides keep their memory.
void copy_row(Array& from, Array& to, int64_t row) {
  const int64_t n = from.elements();
  if (n == 0) return;
  if (from.dtype() == DType::kString) {
    auto first = from.string_values().begin();
    if (exclusive(from))
      std::swap_ranges(first, first + n, to.string_values().begin() + row * n);
    else
      std::copy_n(first, n, to.string_values().begin() + row * n);
    return;
  }
  copy_bytes(static_cast<char*>(to.data()) + static_cast<size_t>(row) * from.bytes(), from.data(),
             from.bytes());
}

// The first `rows` rows.
Array head(const Array& a, int64_t rows) {
  Dims d = a.dims();
  d[0] = rows;
  Array out(a.dtype(), std::move(d));
  if (a.dtype() == DType::kString)
    std::copy_n(a.string_values().begin(), out.elements(), out.string_values().begin());
  else if (out.bytes() > 0)
    copy_bytes(out.data(), a.data(), out.bytes());
  return out;
}

class BatchDataset final : public Dataset {
 public:
  BatchDataset(DatasetPtr input, int64_t size, bool drop)
      : Dataset(batched(input->spec(), size, drop), {input}), size_(size), drop_(drop) {}

  class It final : public Iterator {
   public:
    It(const BatchDataset& d, std::unique_ptr<Iterator> input) : d_(d), input_(std::move(input)) {}
    bool next(Element& out, const CancelToken& cancel) override {
      while (!ended_ && rows_ < d_.size_) {
        if (!input_->next(row_, cancel)) {
          ended_ = true;
          break;
        }
        add();
      }
      if (rows_ == 0 || (rows_ < d_.size_ && d_.drop_)) {
        rows_ = 0;
        return false;
      }
      if (rows_ < d_.size_)
        for (Array& a : batch_.values) a = head(a, rows_);
      rows_ = 0;
      std::swap(out, batch_);
      return true;
    }
    void save(StateWriter& out) override {
      out.put(ended_);
      out.put(rows_);
      if (rows_ > 0) out.put_element(batch_);
      input_->save(out);
    }
    void restore(StateReader& in) override {
      ended_ = in.get(0, 1) != 0;
      rows_ = in.get(0, d_.size_);
      if (rows_ > 0) {
        in.get_element(batch_);
        if (batch_.size() != d_.spec().size()) StateReader::fail("a batch has other components");
        for (size_t i = 0; i < batch_.size(); ++i) {
          const Array& a = batch_[i];
          if (a.dtype() != d_.spec()[i].dtype) StateReader::fail("a batch has another type");
          if (a.rank() < 1 || a.dims()[0] != d_.size_) StateReader::fail("a batch has another size");
          dims_.emplace_back(a.dims().begin() + 1, a.dims().end());
        }
      }
      input_->restore(in);
    }

   private:
    void add() {
      const size_t n = row_.size();
      SLUICE_REQUIRE(n == d_.spec().size(), Code::kInvalidArgument, "Cannot batch an element of ", n,
                     " components as ", spec_string(d_.spec()));
      for (size_t i = 0; i < n; ++i)
        SLUICE_REQUIRE(row_[i].dtype() == d_.spec()[i].dtype, Code::kInvalidArgument,
                       "Cannot batch component ", i, " of type ", row_[i].dtype(), " as ",
                       d_.spec()[i].dtype);
      if (rows_ == 0) {
        batch_.values.resize(n);
        batch_.origin = row_.origin;
        dims_.resize(n);
        full_.resize(n);
        for (size_t i = 0; i < n; ++i) {
          if (full_[i].empty() || dims_[i] != row_[i].dims()) {
            dims_[i] = row_[i].dims();
            full_[i] = with_rows(d_.size_, dims_[i]);
          }
          make_writable(batch_[i], row_[i].dtype(), full_[i]);
        }
      }
      for (size_t i = 0; i < n; ++i)
        SLUICE_REQUIRE(row_[i].dims() == dims_[i], Code::kInvalidArgument,
                       "Cannot batch tensors with different shapes in component ", i,
                       ". First element had shape ", graph::dims_string(dims_[i]), " and element ", rows_,
                       " had shape ", graph::dims_string(row_[i].dims()), ".");
      for (size_t i = 0; i < n; ++i) copy_row(row_[i], batch_[i], rows_);
      ++rows_;
    }

    const BatchDataset& d_;
    std::unique_ptr<Iterator> input_;
    Element row_, batch_;
    std::vector<Dims> dims_, full_;  // of a row, of the batch
    int64_t rows_ = 0;
    bool ended_ = false;
  };

  std::unique_ptr<Iterator> iterate(const IterateContext& context) const override {
    return std::make_unique<It>(*this, inputs()[0]->iterate(context));
  }
  std::string describe() const override { return cat("Batch(", size_, drop_ ? ",drop" : "", ")"); }
  int64_t cardinality() const override { return batches(inputs()[0]->cardinality(), size_, drop_); }

 private:
  const int64_t size_;
  const bool drop_;
};

ElementSpec padded_spec(const DatasetPtr& input, const PaddedBatchOptions& o) {
  ElementSpec spec = input->spec();
  if (!o.shapes.empty()) {
    SLUICE_REQUIRE(o.shapes.size() == spec.size(), Code::kInvalidArgument, "padded_batch: ", o.shapes.size(),
                   " padded shapes for ", spec.size(), " components");
    for (size_t i = 0; i < spec.size(); ++i) {
      const Shape &from = spec[i].shape, &to = o.shapes[i];
      SLUICE_REQUIRE(to.known_rank() && (!from.known_rank() || from.rank() == to.rank()),
                     Code::kInvalidArgument, "The padded shape ", to, " is not compatible with the shape ",
                     from, " of component ", i, " (", spec[i].name, ")");
      spec[i].shape = to;
    }
  }
  for (size_t i = 0; i < spec.size(); ++i)
    SLUICE_REQUIRE(spec[i].shape.known_rank(), Code::kInvalidArgument, "padded_batch: component ", i, " (",
                   spec[i].name, ") has unknown rank; give its padded shape");
  return spec;
}

class PaddedBatchDataset final : public Dataset {
 public:
  PaddedBatchDataset(DatasetPtr input, PaddedBatchOptions o)
      : Dataset(batched(padded_spec(input, o), o.size, o.drop_remainder), {input}),
        row_spec_(padded_spec(input, o)),
        o_(std::move(o)) {
    SLUICE_REQUIRE(o_.padding_values.empty() || o_.padding_values.size() == row_spec_.size(),
                   Code::kInvalidArgument, "padded_batch: ", o_.padding_values.size(), " padding values for ",
                   row_spec_.size(), " components");
    for (size_t i = 0; i < o_.padding_values.size(); ++i) {
      const Array& v = o_.padding_values[i];
      SLUICE_REQUIRE(!v || (v.dtype() == row_spec_[i].dtype && v.elements() == 1), Code::kInvalidArgument,
                     "padded_batch: the padding value of component ", i, " must be one ", row_spec_[i].dtype);
    }
  }

  class It final : public Iterator {
   public:
    It(const PaddedBatchDataset& d, std::unique_ptr<Iterator> input)
        : d_(d), input_(std::move(input)), rows_(static_cast<size_t>(d.o_.size)) {}
    bool next(Element& out, const CancelToken& cancel) override {
      while (!ended_ && have_ < rows_.size()) {
        if (!input_->next(rows_[have_], cancel)) {
          ended_ = true;
          break;
        }
        check(rows_[have_]);
        ++have_;
      }
      if (have_ == 0 || (have_ < rows_.size() && d_.o_.drop_remainder)) {
        have_ = 0;
        return false;
      }
      join(out);
      have_ = 0;
      return true;
    }
    void save(StateWriter& out) override {
      out.put(ended_);
      out.put(static_cast<int64_t>(have_));
      for (size_t i = 0; i < have_; ++i) out.put_element(rows_[i]);
      input_->save(out);
    }
    void restore(StateReader& in) override {
      ended_ = in.get(0, 1) != 0;
      have_ = static_cast<size_t>(in.get(0, static_cast<int64_t>(rows_.size())));
      for (size_t i = 0; i < have_; ++i) {
        in.get_element(rows_[i]);
        check(rows_[i]);
      }
      input_->restore(in);
    }

   private:
    void check(const Element& row) const {
      SLUICE_REQUIRE(row.size() == d_.row_spec_.size(), Code::kInvalidArgument,
                     "padded_batch: an element has ", row.size(), " components, not ", d_.row_spec_.size());
      for (size_t i = 0; i < row.size(); ++i) {
        SLUICE_REQUIRE(row[i].dtype() == d_.row_spec_[i].dtype, Code::kInvalidArgument,
                       "padded_batch: component ", i, " is ", row[i].dtype(), ", not ",
                       d_.row_spec_[i].dtype);
        const Dims &have = row[i].dims(), &want = d_.row_spec_[i].shape.dims();
        SLUICE_REQUIRE(have.size() == want.size(), Code::kInvalidArgument,
                       "All elements in a batch must have the same rank as the padded shape for component", i,
                       ": expected rank ", want.size(), " but got element with rank ", have.size());
        for (size_t k = 0; k < have.size(); ++k)
          SLUICE_REQUIRE(want[k] < 0 || have[k] <= want[k], Code::kInvalidArgument,
                         "Attempted to pad to a smaller size than the input element: component ", i, " (",
                         d_.row_spec_[i].name, ") has shape ", graph::dims_string(have),
                         ", the padded shape is ", d_.row_spec_[i].shape);
      }
    }

    void join(Element& out) {
      out.origin = rows_[0].origin;
      out.values.resize(d_.row_spec_.size());
      for (size_t i = 0; i < out.size(); ++i) {
        Dims dims = d_.row_spec_[i].shape.dims();
        for (size_t k = 0; k < dims.size(); ++k) {
          if (dims[k] >= 0) continue;
          dims[k] = 0;
          for (size_t r = 0; r < have_; ++r) dims[k] = std::max(dims[k], rows_[r][i].dims()[k]);
        }
        Array& to = out.make(i, d_.row_spec_[i].dtype, with_rows(static_cast<int64_t>(have_), dims));
        bool whole = true;
        for (size_t r = 0; r < have_; ++r) whole &= rows_[r][i].dims() == dims;
        if (!whole) pad(to, i);
        const int64_t row = graph::num_elements(dims);
        for (size_t r = 0; r < have_; ++r) place(rows_[r][i], to, dims, static_cast<int64_t>(r) * row);
      }
    }

    void pad(Array& to, size_t i) const {
      const Array value = i < d_.o_.padding_values.size() ? d_.o_.padding_values[i] : Array();
      if (to.dtype() == DType::kString) {
        const std::string text = value ? value.string_values()[0] : std::string();
        std::fill(to.string_values().begin(), to.string_values().end(), text);
        return;
      }
      auto* p = static_cast<char*>(to.data());
      const size_t size = graph::dtype_size(to.dtype());
      if (!value) {
        std::memset(p, 0, to.bytes());
        return;
      }
      for (int64_t k = 0; k < to.elements(); ++k)
        copy_bytes(p + static_cast<size_t>(k) * size, value.data(), size);
    }

    // `from` in the corner of a block of `dims` that starts at element `at`.
    static void place(const Array& from, Array& to, const Dims& dims, int64_t at) {
      if (from.elements() == 0) return;
      const size_t size = from.dtype() == DType::kString ? 0 : graph::dtype_size(from.dtype());
      const int64_t line = dims.empty() ? 1 : from.dims().back();
      std::vector<int64_t> index(dims.empty() ? 0 : dims.size() - 1, 0);
      for (int64_t done = 0; done < from.elements(); done += line) {
        int64_t offset = 0;
        for (size_t k = 0; k < index.size(); ++k) offset = (offset + index[k]) * dims[k + 1];
        if (size == 0)
          std::copy_n(from.string_values().begin() + done, line, to.string_values().begin() + at + offset);
        else
          copy_bytes(static_cast<char*>(to.data()) + static_cast<size_t>(at + offset) * size,
                     static_cast<const char*>(from.data()) + static_cast<size_t>(done) * size,
                     static_cast<size_t>(line) * size);
        for (size_t k = index.size(); k-- > 0;) {
          if (++index[k] < from.dims()[k]) break;
          index[k] = 0;
        }
      }
    }

    const PaddedBatchDataset& d_;
    std::unique_ptr<Iterator> input_;
    std::vector<Element> rows_;
    size_t have_ = 0;
    bool ended_ = false;
  };

  std::unique_ptr<Iterator> iterate(const IterateContext& context) const override {
    return std::make_unique<It>(*this, inputs()[0]->iterate(context));
  }
  std::string describe() const override {
    return cat("PaddedBatch(", o_.size, o_.drop_remainder ? ",drop" : "", ")", spec_string(spec()));
  }
  int64_t cardinality() const override {
    return batches(inputs()[0]->cardinality(), o_.size, o_.drop_remainder);
  }

 private:
  const ElementSpec row_spec_;
  const PaddedBatchOptions o_;
};

}  // namespace

DatasetPtr batch(DatasetPtr input, int64_t size, bool drop_remainder) {
  SLUICE_REQUIRE(input != nullptr, Code::kInvalidArgument, "batch needs a dataset");
  SLUICE_REQUIRE(size >= 1, Code::kInvalidArgument, "Batch size must be greater than zero.");
  return std::make_shared<BatchDataset>(std::move(input), size, drop_remainder);
}

DatasetPtr padded_batch(DatasetPtr input, PaddedBatchOptions options) {
  SLUICE_REQUIRE(input != nullptr, Code::kInvalidArgument, "padded_batch needs a dataset");
  SLUICE_REQUIRE(options.size >= 1, Code::kInvalidArgument, "Batch size must be greater than zero.");
  return std::make_shared<PaddedBatchDataset>(std::move(input), std::move(options));
}

}  // namespace sluice::runtime::data
