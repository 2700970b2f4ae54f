// CSV files (RFC 4180) as elements of scalars, with the rules and error texts of tf.data's CsvDataset.

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "runtime/data/copy_bytes.h"
#include "runtime/data/file_set.h"
#include "runtime/data/line_reader.h"
#include "runtime/data/sources.h"

namespace sluice::runtime::data {
namespace {

bool supported(DType t) {
  return t == DType::kFloat || t == DType::kDouble || t == DType::kInt32 || t == DType::kInt64 ||
         t == DType::kString;
}

ElementSpec csv_spec(const std::vector<CsvColumn>& columns) {
  SLUICE_REQUIRE(!columns.empty(), Code::kInvalidArgument, "csv needs a column at least");
  ElementSpec spec;
  for (size_t i = 0; i < columns.size(); ++i) {
    const CsvColumn& c = columns[i];
    SLUICE_REQUIRE(supported(c.dtype), Code::kInvalidArgument, "csv: column ", i, " (", c.name, ") is ",
                   c.dtype, "; float, double, int32, int64 and string can be read");
    SLUICE_REQUIRE(
        !c.default_value || (c.default_value->dtype() == c.dtype && c.default_value->elements() == 1),
        Code::kInvalidArgument, "csv: the default of column ", i, " (", c.name, ") must be one ", c.dtype);
    spec.push_back({c.name, c.dtype, Shape::scalar()});
  }
  return spec;
}

class CsvDataset;

class CsvReader {
 public:
  CsvReader(const CsvDataset& d, const std::string& path, uint64_t offset, int64_t count);
  bool next(Element& out);
  uint64_t offset() const { return lines_.offset(); }
  int64_t count() const { return count_; }
  bool skip() const { return true; }  // next() stands behind the record already

 private:
  void split(std::string& record);
  void convert(size_t column, const std::string& field, bool missing, Element& out) const;

  const CsvDataset& d_;
  LineReader lines_;
  int64_t count_;  // records
  std::string line_, more_;
  std::vector<std::string> fields_;
  size_t num_fields_ = 0;
};

class CsvDataset final : public Dataset {
 public:
  CsvDataset(const std::vector<std::string>& files, std::vector<CsvColumn> columns, CsvOptions o)
      : Dataset(csv_spec(columns), {}),
        columns(std::move(columns)),
        options(std::move(o)),
        files_(shared_names(files)) {
    SLUICE_REQUIRE(options.select_cols.empty() || options.select_cols.size() == this->columns.size(),
                   Code::kInvalidArgument, "select_cols should match output size");
    for (size_t i = 0; i < options.select_cols.size(); ++i)
      SLUICE_REQUIRE(options.select_cols[i] > (i ? options.select_cols[i - 1] : -1), Code::kInvalidArgument,
                     "select_cols should be strictly increasing indices");
    SLUICE_REQUIRE(options.delimiter != '"' || !options.quotes, Code::kInvalidArgument,
                   "field_delim cannot be the quote");
  }
  std::unique_ptr<Iterator> iterate(const IterateContext&) const override {
    return std::make_unique<FileIterator<CsvReader>>(
        files_, this,
        [](const void* d, const std::shared_ptr<const std::string>& file, uint64_t offset, int64_t count) {
          return std::make_unique<CsvReader>(*static_cast<const CsvDataset*>(d), *file, offset, count);
        });
  }
  std::string describe() const override {
    return cat("Csv", spec_string(spec()), "(", files_.size(), " files)");
  }

  const std::vector<CsvColumn> columns;
  const CsvOptions options;

 private:
  const std::vector<std::shared_ptr<const std::string>> files_;
};

CsvReader::CsvReader(const CsvDataset& d, const std::string& path, uint64_t offset, int64_t count)
    : d_(d), lines_(path, offset, 0), count_(count) {
  if (offset == 0 && d.options.header) lines_.next(&line_);
}

// Cuts the record into fields_; a quoted field may take further lines.
void CsvReader::split(std::string& record) {
  num_fields_ = 0;
  auto field = [&]() -> std::string& {
    if (num_fields_ == fields_.size()) fields_.emplace_back();
    std::string& f = fields_[num_fields_++];
    f.clear();
    return f;
  };
  const char delimiter = d_.options.delimiter;
  for (size_t at = 0;;) {
    std::string& f = field();
    if (d_.options.quotes && at < record.size() && record[at] == '"') {
      for (++at;;) {
        if (at == record.size()) {
          SLUICE_REQUIRE(lines_.next(&more_), Code::kInvalidArgument,
                         "Reached end of file without closing quoted field in record");
          f += '\n';
          record = more_;
          at = 0;
          continue;
        }
        if (record[at] != '"') {
          f += record[at++];
        } else if (at + 1 < record.size() && record[at + 1] == '"') {
          f += '"';
          at += 2;
        } else {
          ++at;
          break;
        }
      }
      SLUICE_REQUIRE(at == record.size() || record[at] == delimiter, Code::kInvalidArgument,
                     "Quote inside a string has to be escaped by another quote");
    } else {
      const size_t end = std::min(record.find(delimiter, at), record.size());
      f.assign(record, at, end - at);
      SLUICE_REQUIRE(!d_.options.quotes || f.find('"') == std::string::npos, Code::kInvalidArgument,
                     "Unquoted fields cannot have quotes inside");
      at = end;
    }
    if (at == record.size()) return;
    ++at;  // behind the delimiter; a field follows even at the end
  }
}

void CsvReader::convert(size_t column, const std::string& field, bool missing, Element& out) const {
  const CsvColumn& c = d_.columns[column];
  const int number =
      d_.options.select_cols.empty() ? static_cast<int>(column) : d_.options.select_cols[column];
  Array& to = out.make(column, c.dtype, {});
  if (missing || field.empty() || field == d_.options.na_value) {
    SLUICE_REQUIRE(c.default_value.has_value(), Code::kInvalidArgument, "Field ", number,
                   " is required but missing in record!");
    if (c.dtype == DType::kString)
      to.string_values()[0] = c.default_value->string_values()[0];
    else
      copy_bytes(to.data(), c.default_value->data(), to.bytes());
    return;
  }
  const char *first = field.data(), *last = first + field.size();
  while (first < last && *first == ' ') ++first;
  while (last > first && last[-1] == ' ') --last;
  if (first < last && *first == '+') ++first;
  auto parse = [&]<class T>() {
    T v{};
    const auto r = std::from_chars(first, last, v);
    SLUICE_REQUIRE(r.ec == std::errc() && r.ptr == last, Code::kInvalidArgument, "Field ", number,
                   " in record is not a valid ", c.dtype, ": ", field);
    to.as<T>()[0] = v;
  };
  switch (c.dtype) {
    case DType::kFloat:
      return parse.template operator()<float>();
    case DType::kDouble:
      return parse.template operator()<double>();
    case DType::kInt32:
      return parse.template operator()<int32_t>();
    case DType::kInt64:
      return parse.template operator()<int64_t>();
    default:
      to.string_values()[0] = field;
  }
}

bool CsvReader::next(Element& out) {
  if (!lines_.next(&line_)) return false;
  ++count_;  // first: an error costs its record
  split(line_);
  const std::vector<int>& select = d_.options.select_cols;
  const size_t wanted = d_.columns.size();
  out.values.resize(wanted);
  if (select.empty()) {
    SLUICE_REQUIRE(num_fields_ <= wanted, Code::kInvalidArgument, "Expect ", wanted,
                   " fields but have more in record");
    // A record that is empty altogether has one field, which is missing.
    SLUICE_REQUIRE(num_fields_ == wanted || (num_fields_ == 1 && fields_[0].empty()), Code::kInvalidArgument,
                   "Expect ", wanted, " fields but have ", num_fields_, " in record");
  } else {
    SLUICE_REQUIRE(static_cast<size_t>(select.back()) < num_fields_, Code::kInvalidArgument,
                   "Expect at least ", select.back() + 1, " fields but have ", num_fields_, " in record");
  }
  for (size_t i = 0; i < wanted; ++i) {
    const size_t k = select.empty() ? i : static_cast<size_t>(select[i]);
    static const std::string nothing;
    convert(i, k < num_fields_ ? fields_[k] : nothing, k >= num_fields_, out);
  }
  return true;
}

}  // namespace

DatasetPtr csv(std::vector<std::string> files, std::vector<CsvColumn> columns, CsvOptions options) {
  return std::make_shared<CsvDataset>(files, std::move(columns), std::move(options));
}

}  // namespace sluice::runtime::data
