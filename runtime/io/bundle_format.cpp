#include "runtime/io/bundle_format.h"

#include <google/protobuf/stubs/logging.h>

#include <cstring>

#include "graph/proto/checkpoint.pb.h"
#include "graph/support/check.h"
#include "runtime/io/crc32c.h"
#include "runtime/io/varint.h"

namespace sluice::runtime::io {
namespace {

constexpr int kVersion = 1;  // of the bundle format; both producer and consumer
constexpr int kMaxShards = 100000;
constexpr int kMaxRank = 254;

// The CRC sees a length as four bytes, or eight when it needs them.
uint32_t extend_with_length(uint32_t crc, uint64_t length) {
  if (length > UINT32_MAX) return crc32c_extend(crc, &length, 8);
  const auto narrow = static_cast<uint32_t>(length);
  return crc32c_extend(crc, &narrow, 4);
}

}  // namespace

std::string encode_bundle_header(int num_shards) {
  proto::BundleHeaderProto h;
  h.set_num_shards(num_shards);
  h.mutable_version()->set_producer(kVersion);
  return h.SerializeAsString();
}

int decode_bundle_header(std::string_view bytes, const std::string& path) {
  google::protobuf::LogSilencer quiet;
  proto::BundleHeaderProto h;
  SLUICE_REQUIRE(h.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())), Code::kDataLoss, path,
                 ": the bundle header cannot be read");
  SLUICE_REQUIRE(h.num_shards() >= 1 && h.num_shards() <= kMaxShards, Code::kDataLoss, path, ": ",
                 h.num_shards(), " is no number of data files");
  SLUICE_REQUIRE(h.endianness() == proto::BundleHeaderProto::LITTLE, Code::kUnimplemented, path,
                 ": the checkpoint was written big-endian, which cannot be read");
  SLUICE_REQUIRE(h.version().min_consumer() <= kVersion, Code::kInvalidArgument, path,
                 ": Checkpoint min consumer version ", h.version().min_consumer(), " above current version ",
                 kVersion);
  SLUICE_REQUIRE(h.version().producer() >= 0, Code::kInvalidArgument, path, ": Checkpoint producer version ",
                 h.version().producer(), " below min producer 0");
  for (int bad : h.version().bad_consumers())
    SLUICE_REQUIRE(bad != kVersion, Code::kInvalidArgument, path, ": Checkpoint disallows consumer version ",
                   kVersion);
  return h.num_shards();
}

std::string encode_bundle_entry(const BundleEntry& entry) {
  proto::BundleEntryProto e;
  e.set_dtype(static_cast<proto::DataType>(static_cast<int>(entry.dtype)));
  auto* shape = e.mutable_shape();
  for (int64_t d : entry.dims) shape->add_dim()->set_size(d);
  e.set_shard_id(entry.shard);
  e.set_offset(entry.offset);
  e.set_size(entry.size);
  e.set_crc32c(entry.masked_crc);
  for (const TensorSlice& slice : entry.slices) {
    auto* s = e.add_slices();
    for (const SliceDim& d : slice) {
      auto* extent = s->add_extent();
      if (d.length < 0) continue;  // the whole dimension: nothing is stated
      extent->set_start(d.start);
      extent->set_length(d.length);
    }
  }
  return e.SerializeAsString();
}

BundleEntry decode_bundle_entry(std::string_view bytes, const std::string& key, const std::string& path) {
  google::protobuf::LogSilencer quiet;
  auto fail = [&](auto&&... why) {
    throw_error(Code::kDataLoss, cat(path, ": entry '", key, "': ", why...));
  };
  proto::BundleEntryProto e;
  if (!e.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) fail("cannot be read");
  BundleEntry out;
  if (!graph::is_valid_dtype(e.dtype()) || graph::is_ref(static_cast<DType>(e.dtype())))
    fail("unknown DataType ", static_cast<int>(e.dtype()));
  out.dtype = static_cast<DType>(e.dtype());
  if (e.shape().unknown_rank() || e.shape().dim_size() > kMaxRank) fail("its shape is not fully known");
  int64_t elements = 1;
  for (const auto& d : e.shape().dim()) {
    if (d.size() < 0) fail("its shape has a negative dimension ", d.size());
    if (__builtin_mul_overflow(elements, d.size(), &elements))
      fail("its shape has more elements than can be counted");
    out.dims.push_back(d.size());
  }
  out.shard = e.shard_id(), out.offset = e.offset(), out.size = e.size(), out.masked_crc = e.crc32c();
  for (const auto& s : e.slices()) {
    TensorSlice slice;
    for (const auto& x : s.extent())
      slice.push_back(
          {.start = x.start(), .length = x.has_length_case() == x.HAS_LENGTH_NOT_SET ? -1 : x.length()});
    out.slices.push_back(std::move(slice));
  }
  return out;
}

std::map<std::string, std::string> object_graph_names(const BundleReader& reader) {
  constexpr const char* kKey = "_CHECKPOINTABLE_OBJECT_GRAPH";
  std::map<std::string, std::string> out;
  const BundleEntry* e = reader.find(kKey);
  if (!e || e->dtype != DType::kString || !e->dims.empty()) return out;
  const Array value = reader.read(kKey);
  const std::string& bytes = value.string_values()[0];
  google::protobuf::LogSilencer quiet;
  proto::TrackableObjectGraph graph;
  SLUICE_REQUIRE(graph.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())), Code::kDataLoss,
                 reader.prefix(), ": the object graph cannot be read");
  for (const auto& node : graph.nodes())
    for (const auto& a : node.attributes())
      if (!a.full_name().empty()) out.emplace(a.full_name(), a.checkpoint_key());
  return out;
}

std::string encode_strings(const std::vector<std::string>& strings, uint32_t* crc) {
  std::string out;
  *crc = 0;
  for (const std::string& s : strings) {
    put_varint(&out, s.size());
    *crc = extend_with_length(*crc, s.size());
  }
  const uint32_t stored = mask_crc(*crc);
  out.append(reinterpret_cast<const char*>(&stored), sizeof stored);
  *crc = crc32c_extend(*crc, &stored, sizeof stored);
  for (const std::string& s : strings) {
    out.append(s);
    *crc = crc32c_extend(*crc, s.data(), s.size());
  }
  return out;
}

const char* decode_strings(std::string_view bytes, uint64_t count, std::vector<std::string>* out,
                           uint32_t* crc) {
  std::vector<uint64_t> lengths(count);
  *crc = 0;
  for (uint64_t& length : lengths) {
    if (!get_varint(&bytes, &length)) return "the string lengths are cut off";
    *crc = extend_with_length(*crc, length);
  }
  uint32_t stored = 0;
  if (bytes.size() < sizeof stored) return "the checksum of the string lengths is cut off";
  std::memcpy(&stored, bytes.data(), sizeof stored);
  if (unmask_crc(stored) != *crc) return "the checksum of the string lengths does not match";
  *crc = crc32c_extend(*crc, &stored, sizeof stored);
  bytes.remove_prefix(sizeof stored);
  out->reserve(count);
  for (uint64_t length : lengths) {
    if (length > bytes.size()) return "the strings are cut off";
    out->emplace_back(bytes.substr(0, length));
    *crc = crc32c_extend(*crc, bytes.data(), length);
    bytes.remove_prefix(length);
  }
  return bytes.empty() ? nullptr : "there are bytes behind the last string";
}

}  // namespace sluice::runtime::io
