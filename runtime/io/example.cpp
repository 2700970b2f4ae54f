#include "runtime/io/example.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>

#include "graph/proto/example.pb.h"
#include "graph/support/check.h"

namespace sluice::runtime::io {
namespace {

const char* kind_name(Feature::Kind k) {
  return k == Feature::Kind::kBytes ? "string" : k == Feature::Kind::kFloat ? "float" : "int64";
}

const Feature& one(const Example& example, std::string_view key, Feature::Kind kind) {
  const auto it = example.find(key);
  SLUICE_REQUIRE(it != example.end(), Code::kInvalidArgument, "Feature: ", key,
                 " (data type: ", kind_name(kind), ") is required but could not be found.");
  const Feature& f = it->second;
  SLUICE_REQUIRE(f.kind == kind, Code::kInvalidArgument, "Key: ", key,
                 ".  Data types don't match. Expected type: ", kind_name(kind), ", got ", kind_name(f.kind));
  const size_t n = kind == Feature::Kind::kBytes ? f.bytes.size() : f.ints.size();
  SLUICE_REQUIRE(n == 1, Code::kInvalidArgument, "Key: ", key, ".  Number of ", kind_name(kind),
                 " values != expected.  values size: ", n, " but output shape: []");
  return f;
}

}  // namespace

Example parse_example(std::string_view record) {
  google::protobuf::LogSilencer quiet;
  proto::Example in;
  const bool read = record.size() <= static_cast<size_t>(INT32_MAX) &&
                    in.ParseFromArray(record.data(), static_cast<int>(record.size()));
  if (!read) {
    std::string shown(record.substr(0, 64));
    for (char& c : shown)
      if (c < 0x20 || c > 0x7e) c = '?';
    throw_error(Code::kInvalidArgument, cat("Could not parse example input, value: '", shown, "'"));
  }
  Example out;
  for (auto& [key, f] : *in.mutable_features()->mutable_feature()) {
    switch (f.kind_case()) {
      case proto::Feature::kBytesList: {
        Feature& to = out[key];
        to.kind = Feature::Kind::kBytes;
        for (auto& v : *f.mutable_bytes_list()->mutable_value()) to.bytes.push_back(std::move(v));
        break;
      }
      case proto::Feature::kFloatList: {
        Feature& to = out[key];
        to.kind = Feature::Kind::kFloat;
        to.floats.assign(f.float_list().value().begin(), f.float_list().value().end());
        break;
      }
      case proto::Feature::kInt64List: {
        Feature& to = out[key];
        to.kind = Feature::Kind::kInt64;
        to.ints.assign(f.int64_list().value().begin(), f.int64_list().value().end());
        break;
      }
      case proto::Feature::KIND_NOT_SET:
        break;
    }
  }
  return out;
}

std::string serialize_example(const Example& example) {
  proto::Example out;
  auto& features = *out.mutable_features()->mutable_feature();
  for (const auto& [key, f] : example) {
    proto::Feature& to = features[key];
    switch (f.kind) {
      case Feature::Kind::kBytes:
        to.mutable_bytes_list();
        for (const auto& v : f.bytes) to.mutable_bytes_list()->add_value(v);
        break;
      case Feature::Kind::kFloat:
        to.mutable_float_list()->mutable_value()->Add(f.floats.begin(), f.floats.end());
        break;
      case Feature::Kind::kInt64:
        to.mutable_int64_list()->mutable_value()->Add(f.ints.begin(), f.ints.end());
        break;
    }
  }
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    SLUICE_CHECK(out.SerializeToCodedStream(&coded), "serialization failed");
  }
  return bytes;
}

const std::string& single_bytes(const Example& example, std::string_view key) {
  return one(example, key, Feature::Kind::kBytes).bytes[0];
}

int64_t single_int(const Example& example, std::string_view key) {
  return one(example, key, Feature::Kind::kInt64).ints[0];
}

}  // namespace sluice::runtime::io
