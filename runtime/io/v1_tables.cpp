#include "runtime/io/v1_tables.h"

#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "graph/proto/checkpoint.pb.h"
#include "runtime/io/bundle_format.h"
#include "runtime/io/file.h"

namespace sluice::runtime::io {
namespace {

namespace fs = std::filesystem;

// '?' is any character.
bool matches(std::string_view text, std::string_view pattern) {
  if (text.size() != pattern.size()) return false;
  for (size_t i = 0; i < text.size(); ++i)
    if (pattern[i] != '?' && pattern[i] != text[i]) return false;
  return true;
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

TensorSlice slice_of(const proto::TensorSliceProto& s) {
  TensorSlice out;
  for (const auto& x : s.extent())
    out.push_back(
        {.start = x.start(), .length = x.has_length_case() == x.HAS_LENGTH_NOT_SET ? -1 : x.length()});
  return out;
}

template <class T, class Field>
void fill(const Field& field, Array* out) {
  T* to = static_cast<T*>(out->data());
  for (int i = 0; i < field.size(); ++i) to[i] = static_cast<T>(field[i]);
}

// Calls f with the repeated field that holds elements of `type` and the type they are stored as; false when
// there is none.
bool take(const proto::TensorProto& t, DType type, int64_t elements, Array* out) {
  const auto n = static_cast<int>(elements);
  auto counted = [&](const auto& field, int per_element, auto&& store) {
    if (field.size() != n * per_element) return false;
    store();
    return true;
  };
  switch (type) {
    case DType::kFloat:
      return counted(t.float_val(), 1, [&] { fill<float>(t.float_val(), out); });
    case DType::kDouble:
      return counted(t.double_val(), 1, [&] { fill<double>(t.double_val(), out); });
    case DType::kInt32:
    case DType::kQint32:
      return counted(t.int_val(), 1, [&] { fill<int32_t>(t.int_val(), out); });
    case DType::kInt16:
    case DType::kQint16:
      return counted(t.int_val(), 1, [&] { fill<int16_t>(t.int_val(), out); });
    case DType::kUint16:
    case DType::kQuint16:
      return counted(t.int_val(), 1, [&] { fill<uint16_t>(t.int_val(), out); });
    case DType::kInt8:
    case DType::kQint8:
      return counted(t.int_val(), 1, [&] { fill<int8_t>(t.int_val(), out); });
    case DType::kUint8:
    case DType::kQuint8:
      return counted(t.int_val(), 1, [&] { fill<uint8_t>(t.int_val(), out); });
    case DType::kInt64:
      return counted(t.int64_val(), 1, [&] { fill<int64_t>(t.int64_val(), out); });
    case DType::kUint32:
      return counted(t.uint32_val(), 1, [&] { fill<uint32_t>(t.uint32_val(), out); });
    case DType::kUint64:
      return counted(t.uint64_val(), 1, [&] { fill<uint64_t>(t.uint64_val(), out); });
    case DType::kBool:
      return counted(t.bool_val(), 1, [&] { fill<uint8_t>(t.bool_val(), out); });
    case DType::kHalf:
    case DType::kBfloat16:
      return counted(t.half_val(), 1, [&] { fill<uint16_t>(t.half_val(), out); });
    case DType::kComplex64:
      return counted(t.scomplex_val(), 2, [&] { fill<float>(t.scomplex_val(), out); });
    case DType::kComplex128:
      return counted(t.dcomplex_val(), 2, [&] { fill<double>(t.dcomplex_val(), out); });
    case DType::kString:
      return counted(t.string_val(), 1, [&] {
        for (int i = 0; i < t.string_val_size(); ++i)
          out->string_values()[static_cast<size_t>(i)] = t.string_val(i);
      });
    default:
      return false;
  }
}

}  // namespace

bool is_table(const std::string& path) {
  constexpr std::string_view kMagic("\x57\xfb\x80\x8b\x24\x75\x47\xdb", 8);
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return false;
  const RandomFile file(path);
  char end[8];
  if (file.size() < sizeof end) return false;
  file.read(file.size() - sizeof end, end, sizeof end);
  return std::string_view(end, sizeof end) == kMagic;
}

std::vector<std::string> v1_files(const std::string& prefix) {
  if (prefix.empty()) return {};
  if (is_file(prefix)) return {prefix};
  const fs::path parent = fs::path(prefix).parent_path();
  const std::string name = fs::path(prefix).filename().string();
  const std::string pattern = name.find('?') == std::string::npos ? name + "-?\?\?\?\?-of-?\?\?\?\?" : name;
  std::vector<std::string> out;
  std::error_code ignored;
  for (const auto& f : fs::directory_iterator(parent.empty() ? "." : parent, ignored)) {
    const std::string file = f.path().filename().string();
    // Tables only: a pattern may cover a bundle's data files as well.
    if (matches(file, pattern) && file.find(".data-") == std::string::npos && is_file(f.path()))
      out.push_back((parent / file).string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

V1Tables::V1Tables(const std::vector<std::string>& files) {
  for (const std::string& path : files) {
    files_.push_back({path, read_table(read_file(path), path)});
    for (const auto& [key, value] : files_.back().table) bytes_ += value.size();
    SLUICE_REQUIRE(!files_.back().table.empty() && files_.back().table[0].first.empty(), Code::kDataLoss,
                   path, ": the table is no checkpoint: it has no list of tensors");
  }
}

void V1Tables::list(std::map<std::string, BundleEntry, std::less<>>* entries,
                    std::map<std::string, BundleEntry, std::less<>>* slices) const {
  google::protobuf::LogSilencer quiet;
  for (size_t f = 0; f < files_.size(); ++f) {
    const File& file = files_[f];
    auto fail = [&](auto&&... why) { throw_error(Code::kDataLoss, cat(file.path, ": ", why...)); };
    proto::SavedTensorSlices all;
    const std::string& bytes = file.table[0].second;
    if (!all.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
      fail("the list of tensors cannot be read");
    std::map<std::string_view, size_t> at;
    for (size_t i = 1; i < file.table.size(); ++i) at.emplace(file.table[i].first, i);
    for (const auto& t : all.meta().tensor()) {
      // The same rules of types and shapes as a bundle's entries have.
      proto::BundleEntryProto like;
      like.set_dtype(t.type());
      *like.mutable_shape() = t.shape();
      const BundleEntry stated = decode_bundle_entry(like.SerializeAsString(), t.name(), file.path);
      BundleEntry& whole =
          entries->try_emplace(t.name(), BundleEntry{.dtype = stated.dtype, .dims = stated.dims})
              .first->second;
      if (whole.dtype != stated.dtype || whole.dims != stated.dims)
        fail("tensor '", t.name(), "' has another shape or type than in the other files");
      for (const auto& s : t.slice()) {
        const TensorSlice slice = slice_of(s);
        const TensorSlice resolved = resolve_slice(slice, stated.dims);
        const std::string key = slice_key(t.name(), slice);
        const auto found = at.find(key);
        if (found == at.end()) fail("the data of tensor '", t.name(), "' are absent");
        BundleEntry part{.dtype = stated.dtype,
                         .dims = slice_dims(resolved),
                         .shard = static_cast<int>(f),
                         .offset = static_cast<int64_t>(found->second)};
        if (covers(resolved, stated.dims)) {
          whole.shard = part.shard, whole.offset = part.offset;
          continue;
        }
        whole.slices.push_back(slice);
        slices->insert_or_assign(key, std::move(part));
      }
    }
  }
}

Array V1Tables::read(std::string_view name, const BundleEntry& e) const {
  google::protobuf::LogSilencer quiet;
  const File& file = files_[static_cast<size_t>(e.shard)];
  auto fail = [&](auto&&... why) {
    throw_error(Code::kDataLoss, cat(file.path, ": tensor '", name, "': ", why...));
  };
  if (e.offset <= 0) fail("its data are absent");
  const std::string& bytes = file.table[static_cast<size_t>(e.offset)].second;
  proto::SavedTensorSlices holder;
  if (!holder.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) fail("its data cannot be read");
  const int64_t elements = graph::num_elements(e.dims);
  if (static_cast<uint64_t>(elements) > bytes.size())
    fail("fewer values than its shape ", graph::dims_string(e.dims));
  Array out = Array::zeros(e.dtype, e.dims);
  if (!take(holder.data().data(), e.dtype, elements, &out))
    fail("its values are not the ", elements, " of type ", e.dtype, " that its shape needs");
  return out;
}

}  // namespace sluice::runtime::io
