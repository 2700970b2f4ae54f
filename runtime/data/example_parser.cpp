#include "runtime/data/example_parser.h"

#include <algorithm>
#include <cstring>

#include "runtime/data/copy_bytes.h"
#include "runtime/data/steps.h"

namespace sluice::runtime::data {
namespace {

/// Protobuf's wire format, read in place.
class Wire {
 public:
  explicit Wire(std::string_view bytes)
      : p_(reinterpret_cast<const uint8_t*>(bytes.data())), end_(p_ + bytes.size()) {}
  bool done() const { return p_ == end_; }
  bool varint(uint64_t* v) {
    if (p_ != end_ && *p_ < 0x80) {
      *v = *p_++;
      return true;
    }
    *v = 0;
    for (int shift = 0; shift < 64 && p_ != end_; shift += 7) {
      const uint64_t byte = *p_++;
      *v |= (byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool bytes(std::string_view* v) {
    uint64_t n = 0;
    if (!varint(&n) || n > static_cast<uint64_t>(end_ - p_)) return false;
    *v = {reinterpret_cast<const char*>(p_), static_cast<size_t>(n)};
    p_ += n;
    return true;
  }
  bool skip(uint64_t type) {
    uint64_t ignored = 0;
    std::string_view text;
    switch (type) {
      case 0:
        return varint(&ignored);
      case 1:
        return advance(8);
      case 2:
        return bytes(&text);
      case 5:
        return advance(4);
      default:
        return false;
    }
  }
  bool advance(size_t n) {
    if (static_cast<size_t>(end_ - p_) < n) return false;
    p_ += n;
    return true;
  }
  const uint8_t* at() const { return p_; }

 private:
  const uint8_t *p_, *end_;
};

constexpr uint64_t tag(int field, int type) {
  return static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(type);
}

// The number of the list in Feature's oneof: 1 bytes, 2 float, 3 int64.
int kind_of(DType t) { return t == DType::kString ? 1 : t == DType::kFloat ? 2 : 3; }
const char* list_name(int kind) { return kind == 1 ? "string" : kind == 2 ? "float" : "int64"; }
const char* values_name(DType t) {
  return t == DType::kString ? "bytes" : t == DType::kFloat ? "float" : "int64";
}

/// One feature of one record: the list that is set, as bytes of its message.
struct Found {
  std::string_view list;
  int kind = 0;                      // 0: the record has no such feature, or of no kind
  std::shared_ptr<std::string> own;  // lists that came in pieces, joined
};

bool read_feature(std::string_view feature, Found* f) {
  *f = {};
  for (Wire w(feature); !w.done();) {
    uint64_t t = 0;
    if (!w.varint(&t)) return false;
    const auto field = static_cast<int>(t >> 3);
    if ((t & 7) != 2 || field < 1 || field > 3) {
      if (!w.skip(t & 7)) return false;
      continue;
    }
    std::string_view list;
    if (!w.bytes(&list)) return false;
    if (f->kind == field) {
      if (!f->own) f->own = std::make_shared<std::string>(f->list);
      f->own->append(list);  // nobody else has it yet
      f->list = *f->own;
    } else {
      *f = {list, field, nullptr};
    }
  }
  return true;
}

// The list's elements, each given to `put(index)` as far as `room`; counts them all. -1: not well formed.
int64_t read_floats(std::string_view list, float* out, int64_t room) {
  int64_t n = 0;
  for (Wire w(list); !w.done();) {
    uint64_t t = 0;
    if (!w.varint(&t)) return -1;
    if (t == tag(1, 2)) {
      std::string_view packed;
      if (!w.bytes(&packed) || packed.size() % sizeof(float) != 0) return -1;
      const auto count = static_cast<int64_t>(packed.size() / sizeof(float));
      if (out && n < room)
        copy_bytes(out + n, packed.data(), static_cast<size_t>(std::min(count, room - n)) * sizeof(float));
      n += count;
    } else if (t == tag(1, 5)) {
      const uint8_t* at = w.at();
      if (!w.advance(sizeof(float))) return -1;
      if (out && n < room) copy_bytes(out + n, at, sizeof(float));
      ++n;
    } else if (!w.skip(t & 7)) {
      return -1;
    }
  }
  return n;
}

int64_t read_ints(std::string_view list, int64_t* out, int64_t room) {
  int64_t n = 0;
  for (Wire w(list); !w.done();) {
    uint64_t t = 0, v = 0;
    if (!w.varint(&t)) return -1;
    if (t == tag(1, 2)) {
      std::string_view packed;
      if (!w.bytes(&packed)) return -1;
      if (!out) {  // a varint ends at each byte without its top bit
        n += std::count_if(packed.begin(), packed.end(), [](char c) { return (c & 0x80) == 0; });
        if (!packed.empty() && (packed.back() & 0x80) != 0) return -1;
        continue;
      }
      for (Wire p(packed); !p.done(); ++n) {
        if (!p.varint(&v)) return -1;
        if (n < room) out[n] = static_cast<int64_t>(v);
      }
    } else if (t == tag(1, 0)) {
      if (!w.varint(&v)) return -1;
      if (out && n < room) out[n] = static_cast<int64_t>(v);
      ++n;
    } else if (!w.skip(t & 7)) {
      return -1;
    }
  }
  return n;
}

int64_t read_strings(std::string_view list, std::string* out, int64_t room) {
  int64_t n = 0;
  for (Wire w(list); !w.done();) {
    uint64_t t = 0;
    std::string_view text;
    if (!w.varint(&t)) return -1;
    if (t != tag(1, 2)) {
      if (!w.skip(t & 7)) return -1;
      continue;
    }
    if (!w.bytes(&text)) return -1;
    if (out && n < room) out[n].assign(text);
    ++n;
  }
  return n;
}

// Elements of the list into `out` from element `at` on, `room` at most; the number that the list holds.
int64_t read_list(std::string_view list, Array* out, int64_t at, int64_t room, DType t) {
  switch (t) {
    case DType::kFloat:
      return read_floats(list, out ? static_cast<float*>(out->data()) + at : nullptr, room);
    case DType::kInt64:
      return read_ints(list, out ? static_cast<int64_t*>(out->data()) + at : nullptr, room);
    default:
      return read_strings(list, out ? out->string_values().data() + at : nullptr, room);
  }
}

void fill(Array& out, int64_t at, int64_t count, const Array& value) {
  if (count == 0) return;
  if (out.dtype() == DType::kString) {
    auto first = out.string_values().begin() + at;
    std::fill(first, first + count, value ? value.string_values()[0] : std::string());
    return;
  }
  const size_t size = graph::dtype_size(out.dtype());
  char* to = static_cast<char*>(out.data()) + static_cast<size_t>(at) * size;
  if (!value) {
    std::memset(to, 0, static_cast<size_t>(count) * size);
    return;
  }
  for (int64_t i = 0; i < count; ++i) copy_bytes(to + static_cast<size_t>(i) * size, value.data(), size);
}

void copy(const Array& from, Array& out, int64_t at) {
  if (out.dtype() == DType::kString)
    std::copy(from.string_values().begin(), from.string_values().end(), out.string_values().begin() + at);
  else if (from.bytes() > 0)
    copy_bytes(static_cast<char*>(out.data()) + static_cast<size_t>(at) * graph::dtype_size(out.dtype()),
               from.data(), from.bytes());
}

[[noreturn]] void undecodable(const std::string& record) {
  std::string shown(record.substr(0, 64));
  for (char& c : shown)
    if (c < 0x20 || c > 0x7e) c = '?';
  throw_error(Code::kInvalidArgument, cat("Could not parse example input, value: '", shown, "'"));
}

}  // namespace

struct ExampleParser::Run {
  std::span<const std::string> records, names;
  std::span<const Array> defaults;
  Element& out;
  std::span<const size_t> places;
  bool single = false;
  size_t next_output = 0;

  size_t place() {
    const size_t k = next_output++;
    return places.empty() ? k : places[k];
  }
  std::string name(size_t record) const { return names.empty() ? "<unknown>" : names[record]; }
  // "Name: n, Key: k, Index: i.  "
  std::string where(size_t record, const std::string& key) const {
    if (single) return cat("Key: ", key, ".  ");
    return cat("Name: ", name(record), ", Key: ", key, ", Index: ", record, ".  ");
  }
  Dims batched(const Dims& dims) const {
    if (single) return dims;
    Dims d{static_cast<int64_t>(records.size())};
    d.insert(d.end(), dims.begin(), dims.end());
    return d;
  }
};

ExampleParser::ExampleParser(ExampleSpec spec) : spec_(std::move(spec)) {
  auto check = [&](const std::string& key, DType t) {
    SLUICE_REQUIRE(t == DType::kFloat || t == DType::kInt64 || t == DType::kString, Code::kInvalidArgument,
                   "Feature ", key, " is ", t, "; a tf.Example holds float, int64 and string");
    keys_.push_back(key);
  };
  for (const DenseFeature& f : spec_.dense) check(f.key, f.dtype);
  for (const SparseFeature& f : spec_.sparse) check(f.key, f.dtype);
  for (const RaggedFeature& f : spec_.ragged) check(f.key, f.dtype);
  std::vector<std::string> sorted = keys_;
  std::sort(sorted.begin(), sorted.end());
  repeated_key_ = std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
}

void ExampleParser::parse(std::span<const std::string> records, std::span<const std::string> names,
                          std::span<const Array> defaults, Element& out,
                          std::span<const size_t> places) const {
  SLUICE_REQUIRE(names.empty() || names.size() == records.size(), Code::kInvalidArgument,
                 "Expected len(names) == len(serialized), but got: ", names.size(), " vs. ", records.size());
  Run r{records, names, defaults, out, places, false, 0};
  run(r);
}

void ExampleParser::parse_single(const std::string& record, std::span<const Array> defaults, Element& out,
                                 std::span<const size_t> places) const {
  Run r{{&record, 1}, {}, defaults, out, places, true, 0};
  run(r);
}

void ExampleParser::run(Run& r) const {
  SLUICE_REQUIRE(r.defaults.empty() || r.defaults.size() == spec_.dense.size(), Code::kInvalidArgument,
                 "Expected len(dense_defaults) == len(dense_keys) but got: ", r.defaults.size(), " vs. ",
                 spec_.dense.size());
  r.out.values.resize(std::max(r.out.size(), num_outputs()));
  const size_t n = r.records.size(), num_keys = keys_.size();
  static thread_local std::vector<Found> all_found;  // [record][feature]; kept for its capacity
  all_found.assign(n * num_keys, {});

  // Where each feature lies. Of a key that comes twice the last one counts; records tend to have their
  // features in one order, so the search begins behind the last hit.
  size_t guess = 0;
  for (size_t i = 0; i < n; ++i) {
    Found* found = all_found.data() + i * num_keys;
    for (Wire example(r.records[i]); !example.done();) {
      uint64_t t = 0;
      if (!example.varint(&t)) undecodable(r.records[i]);
      std::string_view features;
      if (t != tag(1, 2)) {
        if (!example.skip(t & 7)) undecodable(r.records[i]);
        continue;
      }
      if (!example.bytes(&features)) undecodable(r.records[i]);
      for (Wire f(features); !f.done();) {
        std::string_view entry, key, value;
        if (!f.varint(&t)) undecodable(r.records[i]);
        if (t != tag(1, 2)) {
          if (!f.skip(t & 7)) undecodable(r.records[i]);
          continue;
        }
        if (!f.bytes(&entry)) undecodable(r.records[i]);
        for (Wire e(entry); !e.done();) {
          if (!e.varint(&t)) undecodable(r.records[i]);
          if (t == tag(1, 2) ? !e.bytes(&key) : t == tag(2, 2) ? !e.bytes(&value) : !e.skip(t & 7))
            undecodable(r.records[i]);
        }
        bool read = false;  // one key may be asked for in more than one form
        Found feature;
        const size_t first = guess;
        for (size_t step = 0; step < num_keys; ++step) {
          const size_t k = first + step < num_keys ? first + step : first + step - num_keys;
          if (keys_[k] != key) continue;
          if (!read && !read_feature(value, &feature)) undecodable(r.records[i]);
          if (!read) guess = k + 1 < num_keys ? k + 1 : 0;
          read = true;
          found[k] = feature;
          if (!repeated_key_) break;
        }
      }
    }
  }

  auto of = [&](size_t record, size_t feature) -> const Found& {
    return all_found[record * num_keys + feature];
  };
  // How many values a record has; 0 where the feature is missing.
  auto count = [&](size_t record, size_t feature, DType t) -> int64_t {
    const Found& f = of(record, feature);
    if (f.kind == 0) return 0;
    const int64_t c = read_list(f.list, nullptr, 0, 0, t);
    if (c < 0) undecodable(r.records[record]);
    return c;
  };

  const size_t first_sparse = spec_.dense.size(), first_ragged = first_sparse + spec_.sparse.size();
  // Sparse and ragged features: their lengths first, then the values one after another.
  struct Flat {
    std::vector<int64_t> counts;
    int64_t total = 0, longest = 0;
  };
  auto measure = [&](size_t feature, DType t) {
    Flat flat;
    for (size_t i = 0; i < n; ++i) {
      const Found& f = of(i, feature);
      SLUICE_REQUIRE(f.kind == 0 || f.kind == kind_of(t), Code::kInvalidArgument, r.where(i, keys_[feature]),
                     "Data types don't match. Expected type: ", t, ", Actual type: ", list_name(f.kind));
      flat.counts.push_back(count(i, feature, t));
      flat.total += flat.counts.back();
      flat.longest = std::max(flat.longest, flat.counts.back());
    }
    return flat;
  };
  auto read_flat = [&](size_t feature, const Flat& flat, DType t, Array& values) {
    int64_t at = 0;
    for (size_t i = 0; i < n; ++i) {
      const Found& f = of(i, feature);
      if (f.kind != 0 && read_list(f.list, &values, at, flat.counts[i], t) != flat.counts[i])
        undecodable(r.records[i]);
      at += flat.counts[i];
    }
  };

  std::vector<Flat> sparse;
  for (size_t s = 0; s < spec_.sparse.size(); ++s) {
    const Flat& flat = sparse.emplace_back(measure(first_sparse + s, spec_.sparse[s].dtype));
    const int64_t rank = r.single ? 1 : 2;
    int64_t* index = r.out.make<int64_t>(r.place(), {flat.total, rank}).data();
    for (size_t i = 0; i < n; ++i)
      for (int64_t k = 0; k < flat.counts[i]; ++k) {
        if (!r.single) *index++ = static_cast<int64_t>(i);
        *index++ = k;
      }
  }
  for (size_t s = 0; s < spec_.sparse.size(); ++s)
    read_flat(first_sparse + s, sparse[s], spec_.sparse[s].dtype,
              r.out.make(r.place(), spec_.sparse[s].dtype, {sparse[s].total}));
  for (size_t s = 0; s < spec_.sparse.size(); ++s) {
    if (r.single) {
      r.out.make<int64_t>(r.place(), {1})[0] = sparse[s].longest;
      continue;
    }
    auto shape = r.out.make<int64_t>(r.place(), {2});
    shape[0] = static_cast<int64_t>(n);
    shape[1] = sparse[s].longest;
  }

  for (size_t d = 0; d < spec_.dense.size(); ++d) {
    const DenseFeature& f = spec_.dense[d];
    const Array none;
    const Array& fallback = r.defaults.empty() ? none : r.defaults[d];
    const int64_t row = graph::num_elements(f.shape);
    for (size_t i = 0; i < n; ++i)
      SLUICE_REQUIRE(of(i, d).kind == 0 || of(i, d).kind == kind_of(f.dtype), Code::kInvalidArgument,
                     r.where(i, f.key), "Data types don't match. Data type: ", list_name(of(i, d).kind),
                     " but expected type: ", f.dtype);
    SLUICE_REQUIRE(!fallback || fallback.dtype() == f.dtype, Code::kInvalidArgument, "dense_defaults[", d,
                   "].dtype() == ", fallback.dtype(), " != dense_types[", d, "] == ", f.dtype);
    if (f.variable) {
      SLUICE_REQUIRE(!fallback || fallback.elements() <= 1, Code::kInvalidArgument, "dense_defaults[", d,
                     "] of the variable-length feature ", f.key, " must have one element");
      const Array pad = fallback && fallback.elements() == 1 ? fallback : none;
      std::vector<int64_t> counts;
      int64_t longest = 0;
      for (size_t i = 0; i < n; ++i) {
        counts.push_back(count(i, d, f.dtype));
        Dims shown{-1};
        shown.insert(shown.end(), f.shape.begin(), f.shape.end());
        SLUICE_REQUIRE(row > 0 && counts[i] % row == 0, Code::kInvalidArgument, r.where(i, f.key),
                       "Number of ", values_name(f.dtype), " values is not a multiple of stride length. Saw ",
                       counts[i], " values but output shape is: ", Shape(shown));
        longest = std::max(longest, counts[i] / row);
      }
      Dims dims{longest};
      dims.insert(dims.end(), f.shape.begin(), f.shape.end());
      Array& to = r.out.make(r.place(), f.dtype, r.batched(dims));
      for (size_t i = 0; i < n; ++i) {
        const int64_t at = static_cast<int64_t>(i) * longest * row;
        if (counts[i] > 0 && read_list(of(i, d).list, &to, at, counts[i], f.dtype) != counts[i])
          undecodable(r.records[i]);
        fill(to, at + counts[i], longest * row - counts[i], pad);
      }
      continue;
    }
    Array& to = r.out.make(r.place(), f.dtype, r.batched(f.shape));
    for (size_t i = 0; i < n; ++i) {
      const Found& from = of(i, d);
      const int64_t at = static_cast<int64_t>(i) * row;
      if (from.kind == 0) {
        SLUICE_REQUIRE(fallback && (fallback.elements() > 0 || row == 0), Code::kInvalidArgument,
                       r.single ? std::string() : cat("Name: ", r.name(i), ", "), "Feature: ", f.key,
                       " (data type: ", f.dtype, ") is required but could not be found.");
        SLUICE_REQUIRE(fallback.elements() == row || fallback.elements() == 1, Code::kInvalidArgument,
                       "dense_defaults[", d, "].shape() == ", graph::dims_string(fallback.dims()),
                       " is not compatible with dense_shapes_[", d, "] == ", graph::dims_string(f.shape));
        if (fallback.elements() == row)
          copy(fallback, to, at);
        else
          fill(to, at, row, fallback);
        continue;
      }
      const int64_t got = read_list(from.list, &to, at, row, f.dtype);
      if (got < 0) undecodable(r.records[i]);
      SLUICE_REQUIRE(got == row, Code::kInvalidArgument, r.where(i, f.key), "Number of ",
                     values_name(f.dtype), " values != expected.  values size: ", got,
                     " but output shape: ", graph::dims_string(f.shape));
    }
  }

  std::vector<Flat> ragged;
  for (size_t k = 0; k < spec_.ragged.size(); ++k) {
    const DType t = spec_.ragged[k].dtype;
    const Flat& flat = ragged.emplace_back(measure(first_ragged + k, t));
    read_flat(first_ragged + k, flat, t, r.out.make(r.place(), t, {flat.total}));
  }
  for (size_t k = 0; k < spec_.ragged.size(); ++k) {
    Array& splits = r.out.make(r.place(), spec_.ragged[k].splits, {static_cast<int64_t>(n) + 1});
    int64_t sum = 0;
    for (size_t i = 0; i <= n; ++i) {
      if (splits.dtype() == DType::kInt32)
        splits.as<int32_t>()[i] = static_cast<int32_t>(sum);
      else
        splits.as<int64_t>()[i] = sum;
      if (i < n) sum += ragged[k].counts[i];
    }
  }
}

DatasetPtr parse_example(DatasetPtr input, std::vector<FeatureConfig> features, int threads) {
  SLUICE_REQUIRE(input != nullptr, Code::kInvalidArgument, "parse_example needs a dataset");
  SLUICE_REQUIRE(!features.empty(), Code::kInvalidArgument, "Missing features.");
  const ElementSpec& in = input->spec();
  SLUICE_REQUIRE(
      in.size() == 1 && in[0].dtype == DType::kString && in[0].shape.known_rank() && in[0].shape.rank() <= 1,
      Code::kInvalidArgument, "parse_example needs elements of one string, or of one vector of strings, got ",
      spec_string(in));
  const bool single = in[0].shape.rank() == 0;
  const int64_t rows = single ? 0 : in[0].shape.dims()[0];
  auto batched = [&](const Dims& dims) { return single ? Shape(dims) : Shape{rows}.concat(Shape(dims)); };
  ExampleSpec spec;
  std::vector<Array> defaults;
  ElementSpec output;
  std::vector<size_t> indices, values, shapes, dense;
  for (const FeatureConfig& f : features) {
    const std::string key = f.key.empty() ? f.name : f.key;
    const size_t at = output.size();
    if (f.kind == FeatureConfig::Kind::kVarLen) {
      spec.sparse.push_back({key, f.dtype});
      indices.push_back(at), values.push_back(at + 1), shapes.push_back(at + 2);
      const int64_t rank = single ? 1 : 2;
      output.push_back({f.name + "/indices", DType::kInt64, Shape{-1, rank}});
      output.push_back({f.name + "/values", f.dtype, Shape{-1}});
      output.push_back({f.name + "/dense_shape", DType::kInt64, Shape{rank}});
      continue;
    }
    const bool variable = f.kind == FeatureConfig::Kind::kFixedLenSequence;
    spec.dense.push_back({key, f.dtype, f.shape, variable});
    dense.push_back(at);
    Dims dims = f.shape;
    if (variable) dims.insert(dims.begin(), graph::kUnknownDim);
    output.push_back({f.name, f.dtype, batched(dims)});
    defaults.push_back(f.default_value.value_or(Array()));
    SLUICE_REQUIRE(!f.default_value || f.default_value->dtype() == f.dtype, Code::kInvalidArgument,
                   "The default of feature ", f.name, " is ", f.default_value->dtype(), ", the feature ",
                   f.dtype);
    SLUICE_REQUIRE(
        !f.default_value || variable || f.default_value->elements() == graph::num_elements(f.shape),
        Code::kInvalidArgument, "The default of feature ", f.name, " has ", f.default_value->elements(),
        " values, its shape is ", graph::dims_string(f.shape));
  }
  std::vector<size_t> places = indices;
  for (const auto* list : {&values, &shapes, &dense}) places.insert(places.end(), list->begin(), list->end());
  auto parser =
      std::make_shared<const ExampleParser>(std::move(spec));  // shared by the copies of the function
  MapFn fn = [parser, places, defaults, single](Element& from, Element& out) {
    const std::vector<std::string>& records = from[0].string_values();
    if (single)
      parser->parse_single(records[0], defaults, out, places);
    else
      parser->parse(records, {}, defaults, out, places);
  };
  return map(std::move(input), std::move(fn), {.output = std::move(output), .threads = threads});
}

}  // namespace sluice::runtime::data
