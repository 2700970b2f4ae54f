// TFRecord files compressed, damaged and indexed; deflate streams; SequenceExamples.
#include <cstring>

#include "graph/support/log.h"
#include "runtime/io/crc32c.h"
#include "runtime/io/deflate.h"
#include "runtime/io/example.h"
#include "runtime/io/file.h"
#include "runtime/io/record.h"
#include "runtime/io/record_index.h"
#include "tests/runtime/io_test_util.h"

namespace sluice::runtime::io {
namespace {

std::vector<std::string> read_all(const std::string& path, RecordReaderOptions o = {},
                                  int64_t* damaged = nullptr) {
  std::vector<std::string> out;
  RecordReader in(path, o);
  for (std::string record; in.next(&record);) out.push_back(record);
  if (damaged) *damaged = in.damaged();
  return out;
}

std::string framed(const std::vector<std::string>& records) {
  std::string out;
  for (const std::string& r : records) append_record(&out, r);
  return out;
}

// Bytes that compress badly, from a fixed rule.
std::string noise(size_t n, uint32_t seed) {
  std::string s;
  while (s.size() < n) s.push_back(static_cast<char>((seed = seed * 1664525u + 1013904223u) >> 24));
  return s;
}

class Compressed : public testing::TestWithParam<Compression> {};

TEST_P(Compressed, WritesAndReadsBackAndSeeks) {
  const TempFolder t;
  std::vector<std::string> records;
  for (int i = 0; i < 300; ++i)
    records.push_back(noise(static_cast<size_t>(i * 37), static_cast<uint32_t>(i)));
  records.push_back(std::string(5 << 20, 'z'));
  RecordWriter w(t / "r", {.compression = GetParam()});
  for (const auto& r : records) w.write(r);
  w.close();
  EXPECT_EQ(read_all(t / "r", {.compression = GetParam()}), records);

  RecordReader in(t / "r", {.compression = GetParam()});
  std::string record;
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(in.next(&record));
  const uint64_t at = in.offset();
  for (int i = 40; i < 200; ++i) ASSERT_TRUE(in.next(&record));
  in.seek(at, 40);
  ASSERT_TRUE(in.next(&record));
  EXPECT_EQ(record, records[40]);
}

TEST_P(Compressed, WhatWasFlushedCanBeReadBeforeTheStreamEnds) {
  const TempFolder t;
  RecordWriter w(t / "r", {.compression = GetParam()});
  w.write("one");
  w.write("two");
  w.flush();
  EXPECT_EQ(read_all(t / "r", {.compression = GetParam(), .torn_tail_is_end = true}),
            (std::vector<std::string>{"one", "two"}));
  std::string text;
  EXPECT_EQ(error_of([&] { read_all(t / "r", {.compression = GetParam()}); }, &text), Code::kDataLoss);
  EXPECT_NE(text.find("truncated record at"), std::string::npos) << text;
}

TEST_P(Compressed, StreamsOneAfterTheOtherAreOneFile) {
  const TempFolder t;
  std::string both;
  for (const char* name : {"a", "b"}) {
    RecordWriter w(t / name, {.compression = GetParam()});
    w.write(name);
    w.close();
    both += read_file(t / name);
  }
  write_file_atomically(t / "both", both);
  EXPECT_EQ(read_all(t / "both", {.compression = GetParam()}), (std::vector<std::string>{"a", "b"}));
}

TEST_P(Compressed, EveryCutAndFlippedByteIsAnErrorThatNamesTheFile) {
  const TempFolder t;
  RecordWriter w(t / "r", {.compression = GetParam()});
  w.write(noise(100, 1));
  w.write(noise(100, 2));
  w.close();
  const std::string bytes = read_file(t / "r");
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    write_file_atomically(t / "c", bytes.substr(0, cut));
    std::string text;
    EXPECT_EQ(error_of([&] { read_all(t / "c", {.compression = GetParam()}); }, &text), Code::kDataLoss)
        << cut;
    EXPECT_NE(text.find(t / "c"), std::string::npos) << text;
  }
  for (size_t i = 12; i < bytes.size(); ++i) {  // gzip's own header has bytes that mean nothing
    std::string bad = bytes;
    bad[i] = static_cast<char>(bad[i] ^ 4);
    write_file_atomically(t / "c", bad);
    EXPECT_EQ(error_of([&] { read_all(t / "c", {.compression = GetParam()}); }), Code::kDataLoss) << i;
  }
}

TEST_P(Compressed, AFewBytesThatStandForManyAreRefusedUnlessAllowed) {
  const TempFolder t;
  RecordWriter w(t / "r", {.compression = GetParam()});
  w.write(std::string(64 << 20, '\0'));
  w.close();
  std::string text;
  EXPECT_EQ(error_of([&] { read_all(t / "r", {.compression = GetParam()}); }, &text),
            Code::kResourceExhausted);
  EXPECT_NE(text.find("max_record_bytes"), std::string::npos) << text;
  const auto all = read_all(t / "r", {.compression = GetParam(), .max_record_bytes = 64 << 20});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].size(), size_t{64} << 20);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Compressed, testing::Values(Compression::kZlib, Compression::kGzip),
                         [](const auto& p) { return std::string(compression_name(p.param)); });

TEST(TfRecordCompression, NamesAreTensorFlows) {
  EXPECT_EQ(compression_from_name(""), Compression::kNone);
  EXPECT_EQ(compression_from_name("ZLIB"), Compression::kZlib);
  EXPECT_EQ(compression_from_name("GZIP"), Compression::kGzip);
  std::string text;
  EXPECT_EQ(error_of([] { compression_from_name("SNAPPY"); }, &text), Code::kInvalidArgument);
  EXPECT_NE(text.find("Unsupported compression_type: SNAPPY"), std::string::npos);
}

TEST(TfRecordCompression, ACompressedFileReadAsPlainSaysWhichItIs) {
  const TempFolder t;
  for (Compression c : {Compression::kZlib, Compression::kGzip}) {
    RecordWriter w(t / "r", {.compression = c});
    w.write("record");
    w.close();
    std::string text;
    EXPECT_EQ(error_of([&] { read_all(t / "r"); }, &text), Code::kDataLoss);
    EXPECT_NE(text.find(cat("read it as ", compression_name(c))), std::string::npos) << text;
  }
}

TEST(TfRecordCompression, AppendingToACompressedFileIsRefused) {
  const TempFolder t;
  EXPECT_EQ(error_of([&] { RecordWriter w(t / "r", {.compression = Compression::kZlib, .append = true}); }),
            Code::kInvalidArgument);
  for (const char* r : {"a", "b"}) {
    RecordWriter w(t / "plain", {.append = true});
    w.write(r);
    w.close();
  }
  EXPECT_EQ(read_all(t / "plain"), (std::vector<std::string>{"a", "b"}));
}

// Case R01.
TEST(TfRecordDamage, IsNamedByFileOffsetAndNumberAndMayBeSkipped) {
  const TempFolder t;
  std::string bytes = framed({"abc", "abc", "abc"});
  ASSERT_EQ(bytes.size(), 57u);
  bytes[32] = static_cast<char>(bytes[32] ^ 1);
  write_file_atomically(t / "r", bytes);
  std::string text;
  EXPECT_EQ(error_of([&] { read_all(t / "r"); }, &text), Code::kDataLoss);
  EXPECT_EQ(text, cat(t / "r", ": corrupted record at 19 (record number 1)"));
  int64_t damaged = 0;
  EXPECT_EQ(read_all(t / "r", {.skip_damaged = true}, &damaged), (std::vector<std::string>{"abc", "abc"}));
  EXPECT_EQ(damaged, 1);
}

// Case R02.
TEST(TfRecordDamage, AnotherWritersBytesAndAHugeLength) {
  const TempFolder t;
  const std::string bytes = from_hex("0300000000000000 b099490e 616263 6e57f121");
  write_file_atomically(t / "r", bytes);
  EXPECT_EQ(read_all(t / "r"), std::vector<std::string>{"abc"});
  EXPECT_EQ(mask_crc(crc32c(bytes.substr(0, 8))), 0x0e4999b0u);
  EXPECT_EQ(mask_crc(crc32c("abc")), 0x21f1576eu);
  const uint64_t length = uint64_t{1} << 60;
  std::string huge(reinterpret_cast<const char*>(&length), 8);
  const uint32_t crc = mask_crc(crc32c(huge));
  huge.append(reinterpret_cast<const char*>(&crc), 4);
  write_file_atomically(t / "h", huge + "abc");
  EXPECT_EQ(error_of([&] { read_all(t / "h"); }), Code::kDataLoss);
}

TEST(TfRecordDamage, AfterADamagedLengthTheNextRecordIsFound) {
  const TempFolder t;
  const std::vector<std::string> records{noise(50, 1), noise(70, 2), noise(30, 3), noise(10, 4)};
  for (Compression c : {Compression::kNone, Compression::kGzip})
    for (size_t i = 0; i < 12; ++i) {
      std::string bytes = framed(records);
      bytes[66 + i] = static_cast<char>(bytes[66 + i] ^ 1);  // in the header of record 1
      if (c != Compression::kNone) {
        std::string zipped;
        Deflater d(c);
        d.add(bytes, &zipped);
        d.finish(&zipped);
        bytes = zipped;
      }
      write_file_atomically(t / "r", bytes);
      int64_t damaged = 0;
      EXPECT_EQ(read_all(t / "r", {.compression = c, .skip_damaged = true}, &damaged),
                (std::vector<std::string>{records[0], records[2], records[3]}))
          << i;
      EXPECT_EQ(damaged, 1);
    }
}

TEST(TfRecordDamage, ACutOffTailIsSkippedOnce) {
  const TempFolder t;
  const std::string bytes = framed({"first", "second"});
  for (size_t cut = 22; cut < bytes.size(); ++cut) {
    write_file_atomically(t / "r", bytes.substr(0, cut));
    int64_t damaged = 0;
    EXPECT_EQ(read_all(t / "r", {.skip_damaged = true}, &damaged), std::vector<std::string>{"first"});
    EXPECT_EQ(damaged, 1) << cut;
    EXPECT_EQ(read_all(t / "r", {.torn_tail_is_end = true}, &damaged), std::vector<std::string>{"first"});
    EXPECT_EQ(damaged, 0);
  }
}

TEST(TfRecordDamage, AGrowingFileIsReadOnAfterItsEnd) {
  const TempFolder t;
  const std::string bytes = framed({"first", "second"});
  write_file_atomically(t / "r", bytes.substr(0, 30));
  RecordReader in(t / "r", {.torn_tail_is_end = true});
  std::string record;
  ASSERT_TRUE(in.next(&record));
  EXPECT_FALSE(in.next(&record));
  EXPECT_TRUE(in.torn());
  write_file_atomically(t / "r", bytes);
  ASSERT_TRUE(in.next(&record));
  EXPECT_EQ(record, "second");
  EXPECT_FALSE(in.next(&record));
  EXPECT_FALSE(in.torn());
}

TEST(RecordIndexFile, GivesRecordsInAnyOrder) {
  const TempFolder t;
  const std::vector<std::string> records{"zero", "", noise(1000, 3), "three"};
  write_file_atomically(t / "r", framed(records));
  EXPECT_EQ(write_record_index(t / "r", t / "r.idx"), 4);
  EXPECT_EQ(read_file(t / "r.idx"), "0 20\n20 16\n36 1016\n1052 21\n");
  IndexedRecords in(t / "r", t / "r.idx");
  ASSERT_EQ(in.size(), 4);
  std::string record;
  for (int64_t i : {2, 0, 3, 1, 2}) {
    in.read(i, &record);
    EXPECT_EQ(record, records[static_cast<size_t>(i)]);
  }
  EXPECT_EQ(error_of([&] { in.read(4, &record); }), Code::kOutOfRange);
  EXPECT_EQ(IndexedRecords(t / "r").index(), in.index());
}

TEST(RecordIndexFile, OneThatDoesNotFitIsRefused) {
  const TempFolder t;
  write_file_atomically(t / "r", framed({"abc", "defg"}));
  std::string record, text;
  write_file_atomically(t / "i", "0 19\n19 400\n");
  EXPECT_EQ(error_of([&] { IndexedRecords(t / "r", t / "i"); }), Code::kFailedPrecondition);
  write_file_atomically(t / "i", "0 20\n20 19\n");
  EXPECT_EQ(error_of([&] { IndexedRecords(t / "r", t / "i").read(0, &record); }), Code::kFailedPrecondition);
  EXPECT_EQ(error_of([&] { IndexedRecords(t / "r", t / "i").read(1, &record); }, &text), Code::kDataLoss);
  EXPECT_NE(text.find("record at 20 (record number 1)"), std::string::npos) << text;
  for (const char* bad : {"x", "0 19\n10 19\n", "0 -1\n", "0\n", "0 19 3\n", "99999999999999999999 16\n",
                          "18446744073709551615 18446744073709551615\n"}) {
    write_file_atomically(t / "i", bad);
    EXPECT_EQ(error_of([&] { read_record_index(t / "i"); }, &text), Code::kDataLoss) << bad;
    EXPECT_NE(text.find("line "), std::string::npos);
  }
}

TEST(SequenceExamples, RoundTripWithContextListsAndStepsOfNoKind) {
  SequenceExample e;
  e.context["id"] = {.kind = Feature::Kind::kInt64, .ints = {7}};
  e.feature_lists["words"] = {{.kind = Feature::Kind::kBytes, .bytes = {"a", "b"}},
                              {.kind = Feature::Kind::kNone},
                              {.kind = Feature::Kind::kBytes}};
  e.feature_lists["scores"] = {{.kind = Feature::Kind::kFloat, .floats = {0.5f, -1}}};
  e.feature_lists["none"] = {};
  const std::string bytes = serialize_sequence_example(e);
  EXPECT_EQ(parse_sequence_example(bytes), e);
  EXPECT_EQ(serialize_sequence_example(parse_sequence_example(bytes)), bytes);
  EXPECT_EQ(parse_sequence_example(""), SequenceExample());
  std::string text;
  EXPECT_EQ(error_of([] { parse_sequence_example("\x12\xff"); }, &text), Code::kInvalidArgument);
  EXPECT_NE(text.find("Could not parse example input"), std::string::npos);
}

}  // namespace
}  // namespace sluice::runtime::io
