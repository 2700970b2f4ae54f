#include "runtime/io/example.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>

#include "graph/proto/example.pb.h"
#include "graph/support/check.h"

namespace sluice::runtime::io {
namespace {

const char* kind_name(Feature::Kind k) {
  constexpr const char* kNames[] = {"string", "float", "int64", "none"};
  return kNames[static_cast<int>(k)];
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

namespace {

template <class Message>
void read_message(std::string_view record, Message* message) {
  google::protobuf::LogSilencer quiet;
  const bool read = record.size() <= static_cast<size_t>(INT32_MAX) &&
                    message->ParseFromArray(record.data(), static_cast<int>(record.size()));
  if (read) return;
  std::string shown(record.substr(0, 64));
  for (char& c : shown)
    if (c < 0x20 || c > 0x7e) c = '?';
  throw_error(Code::kInvalidArgument, cat("Could not parse example input, value: '", shown, "'"));
}

template <class Message>
std::string write_message(const Message& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  {
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    SLUICE_CHECK(message.SerializeToCodedStream(&coded), "serialization failed");
  }
  return bytes;
}

// Takes the strings out of the message.
Feature take_feature(proto::Feature* f) {
  Feature to;
  switch (f->kind_case()) {
    case proto::Feature::kBytesList: {
      auto& values = *f->mutable_bytes_list()->mutable_value();
      to.kind = Feature::Kind::kBytes;
      to.bytes.reserve(static_cast<size_t>(values.size()));
      for (auto& v : values) to.bytes.push_back(std::move(v));
      break;
    }
    case proto::Feature::kFloatList:
      to.kind = Feature::Kind::kFloat;
      to.floats.assign(f->float_list().value().begin(), f->float_list().value().end());
      break;
    case proto::Feature::kInt64List:
      to.kind = Feature::Kind::kInt64;
      to.ints.assign(f->int64_list().value().begin(), f->int64_list().value().end());
      break;
    case proto::Feature::KIND_NOT_SET:
      to.kind = Feature::Kind::kNone;
      break;
  }
  return to;
}

Example take_features(proto::Features* in) {
  Example out;
  for (auto& [key, f] : *in->mutable_feature())
    if (f.kind_case() != proto::Feature::KIND_NOT_SET) out[key] = take_feature(&f);
  return out;
}

void put_feature(const Feature& f, proto::Feature* to) {
  switch (f.kind) {
    case Feature::Kind::kBytes:
      to->mutable_bytes_list();
      for (const auto& v : f.bytes) to->mutable_bytes_list()->add_value(v);
      break;
    case Feature::Kind::kFloat:
      to->mutable_float_list()->mutable_value()->Add(f.floats.begin(), f.floats.end());
      break;
    case Feature::Kind::kInt64:
      to->mutable_int64_list()->mutable_value()->Add(f.ints.begin(), f.ints.end());
      break;
    case Feature::Kind::kNone:
      break;
  }
}

void put_features(const Example& example, proto::Features* to) {
  for (const auto& [key, f] : example) put_feature(f, &(*to->mutable_feature())[key]);
}

}  // namespace

Example parse_example(std::string_view record) {
  proto::Example in;
  read_message(record, &in);
  return take_features(in.mutable_features());
}

std::string serialize_example(const Example& example) {
  proto::Example out;
  put_features(example, out.mutable_features());
  return write_message(out);
}

SequenceExample parse_sequence_example(std::string_view record) {
  proto::SequenceExample in;
  read_message(record, &in);
  SequenceExample out{.context = take_features(in.mutable_context())};
  for (auto& [key, list] : *in.mutable_feature_lists()->mutable_feature_list()) {
    std::vector<Feature>& to = out.feature_lists[key];
    to.reserve(static_cast<size_t>(list.feature_size()));
    for (auto& f : *list.mutable_feature()) to.push_back(take_feature(&f));
  }
  return out;
}

std::string serialize_sequence_example(const SequenceExample& example) {
  proto::SequenceExample out;
  put_features(example.context, out.mutable_context());
  for (const auto& [key, steps] : example.feature_lists) {
    proto::FeatureList& list = (*out.mutable_feature_lists()->mutable_feature_list())[key];
    for (const Feature& f : steps) put_feature(f, list.add_feature());
  }
  return write_message(out);
}

const std::string& single_bytes(const Example& example, std::string_view key) {
  return one(example, key, Feature::Kind::kBytes).bytes[0];
}

int64_t single_int(const Example& example, std::string_view key) {
  return one(example, key, Feature::Kind::kInt64).ints[0];
}

}  // namespace sluice::runtime::io
