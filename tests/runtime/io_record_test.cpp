// CRC-32C, TFRecord and Example: the format's vectors, and files that are cut or changed.
#include "runtime/io/record.h"

#include <sys/resource.h>

#include "runtime/io/crc32c.h"
#include "runtime/io/example.h"
#include "runtime/io/file.h"
#include "tests/runtime/io_test_util.h"

namespace sluice::runtime::io {
namespace {

TEST(Crc32c, KnownValues) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(mask_crc(0), 0xa282ead8u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(unmask_crc(mask_crc(0x12345678u)), 0x12345678u);
}

TEST(Crc32c, TableAndInstructionAgreeAtEveryLength) {
  std::string data;
  for (int i = 0; i < 300; ++i) data.push_back(static_cast<char>(i * 37 + 11));
  for (size_t n = 0; n < data.size(); ++n)
    for (size_t from = 0; from <= std::min<size_t>(n, 3); ++from)
      ASSERT_EQ(crc32c_extend(7, data.data() + from, n - from),
                crc32c_extend_by_table(7, data.data() + from, n - from));
}

// Long data go through three lanes at once.
TEST(Crc32c, LanesAgreeWithTheTable) {
  std::string data(40000, '\0');
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 31 + i / 7);
  for (size_t n = 0; n + 13 < data.size(); n += 499)
    ASSERT_EQ(crc32c_extend(5, data.data() + n % 13, n), crc32c_extend_by_table(5, data.data() + n % 13, n))
        << n;
}

TEST(TfRecord, KnownBytes) {
  std::string out;
  append_record(&out, "");
  append_record(&out, "foo");
  append_record(&out, "\x08\x96\x01");
  EXPECT_EQ(to_hex(out),
            "00000000000000002903980"
            "7d8ea82a2"
            "0300000000000000b099490e666f6f618abefe"
            "0300000000000000b099490e08960106fa6e2c");
}

TEST(TfRecord, WritesAndReadsBackAcrossBuffers) {
  const TempFolder t;
  RecordWriter w(t / "r");
  for (int i = 0; i < 2000; ++i) w.write(std::string(static_cast<size_t>(i), static_cast<char>(i)));
  w.write(std::string(3 << 20, 'x'));
  w.close();
  RecordReader r(t / "r");
  std::string record;
  uint64_t at_100 = 0;
  for (int i = 0; i < 2000; ++i) {
    if (i == 100) at_100 = r.offset();
    ASSERT_TRUE(r.next(&record));
    ASSERT_EQ(record, std::string(static_cast<size_t>(i), static_cast<char>(i)));
  }
  ASSERT_TRUE(r.next(&record));
  EXPECT_EQ(record.size(), size_t{3} << 20);
  EXPECT_FALSE(r.next(&record));
  r.seek(at_100, 100);
  ASSERT_TRUE(r.next(&record));
  EXPECT_EQ(record.size(), 100u);
}

TEST(TfRecord, EveryCutAndEveryFlippedByteIsFound) {
  const TempFolder t;
  std::string bytes;
  append_record(&bytes, "first");
  const size_t second = bytes.size();
  append_record(&bytes, "second record");
  auto read_all = [&](const std::string& b) {
    write_file_atomically(t / "r", b);
    RecordReader r(t / "r");
    for (std::string record; r.next(&record);) {
    }
  };
  for (size_t cut = second + 1; cut < bytes.size(); ++cut) {
    std::string text;
    EXPECT_EQ(error_of([&] { read_all(bytes.substr(0, cut)); }, &text), Code::kDataLoss) << cut;
    EXPECT_NE(text.find("truncated record at " + std::to_string(second) + " (record number 1)"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find(t / "r"), std::string::npos);
  }
  for (size_t i = second; i < bytes.size(); ++i) {
    std::string bad = bytes, text;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    EXPECT_EQ(error_of([&] { read_all(bad); }, &text), Code::kDataLoss) << i;
    EXPECT_NE(text.find("corrupted record at " + std::to_string(second)), std::string::npos) << text;
  }
  EXPECT_EQ(error_of([&] { read_all(bytes.substr(0, second)); }), Code::kOk);
}

TEST(TfRecord, AHugeLengthWithARightChecksumAllocatesNothing) {
  const TempFolder t;
  const uint64_t length = uint64_t{1} << 40;
  std::string bytes(reinterpret_cast<const char*>(&length), 8);
  const uint32_t crc = mask_crc(crc32c(bytes));
  bytes.append(reinterpret_cast<const char*>(&crc), 4);
  write_file_atomically(t / "r", bytes + "12345678");
  RecordReader r(t / "r");
  std::string record;
  EXPECT_EQ(error_of([&] { r.next(&record); }), Code::kDataLoss);
}

TEST(TfRecord, MissingFilesAndFoldersAreNamed) {
  std::string text;
  EXPECT_EQ(error_of([] { RecordReader r("/nowhere/x"); }, &text), Code::kNotFound);
  EXPECT_NE(text.find("/nowhere/x"), std::string::npos);
  EXPECT_EQ(error_of([] { RecordReader r("/"); }), Code::kFailedPrecondition);
  EXPECT_EQ(error_of([] { RecordWriter w("/nowhere/x"); }), Code::kNotFound);
}

TEST(Example, RoundTripAndUnpackedLists) {
  Example e;
  e["image"] = {.kind = Feature::Kind::kBytes, .bytes = {std::string("\0\xff", 2), ""}};
  e["label"] = {.kind = Feature::Kind::kInt64, .ints = {-1, 7}};
  e["box"] = {.kind = Feature::Kind::kFloat, .floats = {0.5f}};
  EXPECT_EQ(parse_example(serialize_example(e)), e);
  EXPECT_EQ(serialize_example(parse_example(serialize_example(e))), serialize_example(e));
  // features { feature { key: "i" value { int64_list { value: 3 value: 4 } } } }, each value with its own tag
  const Example unpacked = parse_example(from_hex("0a0d 0a0b 0a0169 1206 1a04 0803 0804"));
  EXPECT_EQ(unpacked.at("i").ints, (std::vector<int64_t>{3, 4}));
  EXPECT_TRUE(parse_example(from_hex("0a07 0a05 0a0169 1200")).empty()) << "a feature of no kind is missing";
  EXPECT_TRUE(parse_example("").empty());
}

TEST(Example, DamageAndWrongKindsAreTold) {
  std::string text;
  EXPECT_EQ(error_of([] { parse_example("\x0a\xff"); }, &text), Code::kInvalidArgument);
  EXPECT_NE(text.find("Could not parse example input"), std::string::npos);
  Example e;
  e["label"] = {.kind = Feature::Kind::kInt64, .ints = {1, 2}};
  EXPECT_EQ(error_of([&] { single_bytes(e, "image"); }, &text), Code::kInvalidArgument);
  EXPECT_NE(text.find("Feature: image (data type: string) is required but could not be found."),
            std::string::npos);
  EXPECT_EQ(error_of([&] { single_bytes(e, "label"); }), Code::kInvalidArgument);
  EXPECT_EQ(error_of([&] { single_int(e, "label"); }), Code::kInvalidArgument);
}

}  // namespace
}  // namespace sluice::runtime::io
