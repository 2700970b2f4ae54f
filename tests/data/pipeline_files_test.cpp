// File sources: what they give, what they say of damage, and that they go on behind it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/io/example.h"
#include "runtime/io/record.h"
#include "tests/data/pipeline_util.h"

namespace sluice {
namespace {

using namespace pipetest;
using dsl::data::Dataset;
using graph::DType;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
namespace data = dsl::data;

std::string records(std::initializer_list<std::string> all) {
  std::string bytes;
  for (const std::string& r : all) runtime::io::append_record(&bytes, r);
  return bytes;
}

TEST(FileSources, RecordsOfSeveralFilesInOrder) {
  const Folder f("records");
  const Dataset d = data::tf_records(
      {f.write("a", records({"one", "", "two"})), f.write("b", ""), f.write("c", records({"three"}))});
  EXPECT_THAT(run(d), ElementsAre("string[]:'one'", "string[]:''", "string[]:'two'", "string[]:'three'"));
}

TEST(FileSources, ADamagedRecordNamesFileNumberAndOffsetAndIsTheOnlyOneLost) {
  const Folder f("damaged");
  std::string bytes = records({"first", "second", "third"});
  bytes[12 + 5 + 4 + 12] ^= 1;  // a byte of "second"
  const std::string a = f.write("a", bytes), b = f.write("b", records({"fourth"}));
  const auto got = run(data::tf_records({a, b}));
  ASSERT_EQ(got.size(), 4u);
  EXPECT_THAT(got[1], AllOf(HasSubstr(a), HasSubstr("corrupted record at 21"), HasSubstr("number 1")));
  EXPECT_THAT(got[2], "string[]:'third'");
  EXPECT_THAT(run(data::tf_records({a, b}).ignore_errors()),
              ElementsAre("string[]:'first'", "string[]:'third'", "string[]:'fourth'"));
}

TEST(FileSources, BehindADamagedLengthTheNextRecordIsLookedFor) {
  const Folder f("length");
  std::string bytes = records({"first", "second", "third"});
  bytes[21] ^= 1;
  const auto got = run(data::tf_records({f.write("a", bytes), f.write("b", records({"fourth"}))}));
  ASSERT_EQ(got.size(), 4u);
  EXPECT_THAT(got[1], HasSubstr("corrupted record at 21"));
  EXPECT_EQ(got[2], "string[]:'third'");
  EXPECT_EQ(got[3], "string[]:'fourth'");
}

TEST(FileSources, CompressedRecordsReadAlike) {
  const Folder f("zipped");
  runtime::io::RecordWriter w(f.file("a.gz"), {.compression = runtime::io::Compression::kGzip});
  for (int i = 0; i < 100; ++i) w.write(cat("record ", i));
  w.close();
  const Dataset d = data::tf_records({f.file("a.gz")}, {.compression = runtime::io::Compression::kGzip});
  Pipeline p = d.iterate();
  EXPECT_EQ(run(p, 60).back(), "string[]:'record 59'");
  Pipeline q = d.iterate();
  q.restore(p.save());
  EXPECT_EQ(run(q), run(p));
}

TEST(FileSources, ATruncatedFileIsSaidToBe) {
  const Folder f("truncated");
  const std::string bytes = records({"first", "second"});
  EXPECT_THAT(run(data::tf_records({f.write("a", bytes.substr(0, bytes.size() - 3))}))[1],
              HasSubstr("truncated record at 21"));
}

TEST(FileSources, AMissingFileIsAnErrorAndTheNextOneIsRead) {
  const Folder f("missing");
  const auto got = run(data::text_lines({f.file("nothing"), f.write("b", "x\n")}));
  ASSERT_EQ(got.size(), 2u);
  EXPECT_THAT(got[0], HasSubstr(f.file("nothing")));
  EXPECT_EQ(got[1], "string[]:'x'");
}

TEST(FileSources, LinesLoseTheirEnds) {
  const Folder f("lines");
  EXPECT_THAT(run(data::text_lines({f.write("a", "one\r\n\ntwo"), f.write("b", "three\n")})),
              ElementsAre("string[]:'one'", "string[]:''", "string[]:'two'", "string[]:'three'"));
  const std::string longer(600'000, 'x');
  EXPECT_EQ(run(data::text_lines({f.write("c", longer + "\nend\n")})),
            (std::vector<std::string>{"string[]:'" + longer + "'", "string[]:'end'"}));
}

TEST(FileSources, ListFilesSortsAndSaysWhenThereAreNone) {
  const Folder f("list");
  f.write("b.txt", ""), f.write("a.txt", ""), f.write("c.dat", "");
  EXPECT_THAT(run(data::list_files(f.file("*.txt"))),
              ElementsAre("string[]:'" + f.file("a.txt") + "'", "string[]:'" + f.file("b.txt") + "'"));
  try {
    data::list_files(f.file("*.none"));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kNotFound);
    EXPECT_THAT(e.message(), HasSubstr("No files matched pattern: "));
  }
}

std::vector<data::CsvColumn> three() {
  return {{"i", DType::kInt32, {}}, {"f", DType::kFloat, {}}, {"s", DType::kString, {}}};
}

std::string csv_one(const std::string& text, std::vector<data::CsvColumn> columns, data::CsvOptions o = {}) {
  const Folder f("csv");
  const auto got = run(data::csv({f.write("a.csv", text)}, std::move(columns), std::move(o)));
  return got.empty() ? "" : got[0];
}

TEST(FileSources, CsvReadsWhatTfDataReads) {
  const Folder f("csv");
  const Dataset d =
      data::csv({f.write("a.csv", "1,2.5,a\n-3, 4.5 ,\"b \"\"q\"\", c\"\n7,1,\"two\nlines\"\n")}, three());
  EXPECT_THAT(run(d), ElementsAre("int32[]:01000000 float[]:00002040 string[]:'a'",
                                  "int32[]:fdffffff float[]:00009040 string[]:'b \"q\", c'",
                                  "int32[]:07000000 float[]:0000803f string[]:'two\nlines'"));
}

TEST(FileSources, CsvErrorsAreTfDatas) {
  EXPECT_THAT(csv_one("1,2\n", three()), HasSubstr("Expect 3 fields but have 2 in record"));
  EXPECT_THAT(csv_one("1,2,3,4\n", three()), HasSubstr("Expect 3 fields but have more in record"));
  EXPECT_THAT(csv_one("x,2,3\n", three()), HasSubstr("Field 0 in record is not a valid int32: x"));
  EXPECT_THAT(csv_one("1,y,3\n", three()), HasSubstr("Field 1 in record is not a valid float: y"));
  EXPECT_THAT(csv_one("1,2,a\"b\n", three()), HasSubstr("Unquoted fields cannot have quotes inside"));
  EXPECT_THAT(csv_one("1,2,\"ab\n", three()),
              HasSubstr("Reached end of file without closing quoted field in record"));
  EXPECT_THAT(csv_one("1,,\n", three()), HasSubstr("Field 1 is required but missing in record!"));
  EXPECT_THAT(csv_one("\n", three()), HasSubstr("Field 0 is required but missing in record!"));
}

TEST(FileSources, ACsvErrorNamesItsRecordAndTheNextIsRead) {
  const Folder f("csv");
  const std::string path = f.write("a.csv", "i,f,s\n1,2,x\nbad,2,y\n3,4,z\n");
  const auto got = run(data::csv({path}, three(), {.header = true}));
  ASSERT_EQ(got.size(), 3u);
  EXPECT_THAT(got[1], HasSubstr("record 1 at offset 12 of " + path));
  EXPECT_THAT(got[2], HasSubstr("'z'"));
}

TEST(FileSources, CsvDefaultsNaAndSelection) {
  auto columns = three();
  columns[1].default_value = Array::scalar(7.0f);
  columns[2].default_value = Array::strings({}, {"d"});
  EXPECT_EQ(csv_one("1,,\n", columns), "int32[]:01000000 float[]:0000e040 string[]:'d'");
  EXPECT_EQ(csv_one("1,NA,x\n", columns, {.na_value = "NA"}),
            "int32[]:01000000 float[]:0000e040 string[]:'x'");
  EXPECT_EQ(csv_one("h;i;j\n1;2;3\n", {{"", DType::kInt32, {}}, {"", DType::kString, {}}},
                    {.header = true, .delimiter = ';', .select_cols = {0, 2}}),
            "int32[]:01000000 string[]:'3'");
}

TEST(FileSources, IdxFilesGiveRows) {
  const Folder f("idx");
  const std::string images(
      "\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x02"
      "abcd",
      20),
      labels("\0\0\x08\x01\0\0\0\x02\x05\x06", 10);
  EXPECT_THAT(run(data::idx({f.write("i", images), f.write("l", labels)}, {"image", "label"})),
              ElementsAre("uint8[1,2]:6162 uint8[]:05", "uint8[1,2]:6364 uint8[]:06"));
}

TEST(FileSources, AnErrorInAMapNamesTheRecordItWasGiven) {
  const Folder f("map");
  const std::string path = f.write("a", records({"12", "x", "34"}));
  for (int threads : {1, 2}) {
    const auto got = run(data::tf_records({path}).map(
        [](Element& in, Element& out) {
          const std::string& s = std::as_const(in[0]).string_values()[0];
          SLUICE_REQUIRE(s != "x", Code::kInvalidArgument, "not a number: ", s);
          out.make<int64_t>(0, {})[0] = std::stoll(s);
        },
        {.output = {{"", DType::kInt64, {}}}, .threads = threads}));
    ASSERT_EQ(got.size(), 3u);
    EXPECT_EQ(got[1], cat("error: not a number: x (record 1 at offset 18 of ", path, ")"));
  }
}

std::string example(int64_t label, std::vector<float> values) {
  runtime::io::Example e;
  e["label"] = {runtime::io::Feature::Kind::kInt64, {}, {}, {label}};
  e["x"] = {runtime::io::Feature::Kind::kFloat, {}, std::move(values), {}};
  return runtime::io::serialize_example(e);
}

TEST(FileSources, ParseExampleOneByOneAndInBatches) {
  const Folder f("parse");
  const std::string path = f.write("a", records({example(3, {1, 2}), example(4, {5, 6})}));
  const std::vector<data::FeatureConfig> features{data::fixed_len("x", {2}, DType::kFloat),
                                                  data::var_len("label", DType::kInt64)};
  const Dataset one = data::tf_records({path}).parse_example(features);
  EXPECT_EQ(runtime::data::spec_string(one.spec()),
            "(x: float[2], label/indices: int64[?,1], label/values: int64[?], label/dense_shape: int64[1])");
  EXPECT_EQ(run(one)[1], "float[2]:0000a0400000c040 int64[1,1]:0, int64[1]:4, int64[1]:1,");
  const Dataset many = data::tf_records({path}).batch(2).parse_example(features, 2);
  EXPECT_EQ(run(many)[0],
            "float[2,2]:0000803f000000400000a0400000c040 int64[2,2]:0,0,1,0, int64[2]:3,4, int64[2]:2,1,");
}

TEST(FileSources, ARecordThatDoesNotParseIsNamed) {
  const Folder f("parse");
  const std::string path = f.write("a", records({example(3, {1, 2}), example(4, {5})}));
  const auto got = run(data::tf_records({path}).parse_example({data::fixed_len("x", {2}, DType::kFloat)}));
  EXPECT_THAT(got[1],
              AllOf(HasSubstr("Key: x.  Number of float values != expected.  values size: 1 but output "
                              "shape: [2]"),
                    HasSubstr("(record 1 at offset "), HasSubstr(path)));
}

}  // namespace
}  // namespace sluice
