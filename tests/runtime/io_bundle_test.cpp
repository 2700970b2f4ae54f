// Checkpoints: the reference vector byte for byte, every type, slices, state files, damage (cases S01, S08,
// S09, S10, S12).
#include "runtime/io/bundle.h"

#include <sys/resource.h>

#include <csignal>

#include "runtime/io/bundle_format.h"
#include "runtime/io/checkpoint.h"
#include "runtime/io/file.h"
#include "runtime/io/table.h"
#include "tests/runtime/io_test_util.h"

namespace sluice::runtime::io {
namespace {

TEST(Bundle, WritesTheReferenceVector) {
  const TempFolder t;
  BundleWriter w(t / "m");
  w.add("global_step", Array::scalar<int64_t>(7));
  w.add("w", Array::from<float>({2}, {1, 2}));
  EXPECT_FALSE(file_exists(shard_path(t / "m", 0, 1))) << "nothing appears before finish";
  w.finish();
  EXPECT_EQ(to_hex(read_file(shard_path(t / "m", 0, 1))), "07000000000000000000803f00000040");
  EXPECT_EQ(read_file(t / "m.index").size(), 148u);
  EXPECT_EQ(
      to_hex(read_file(t / "m.index").substr(0, 63)),
      to_hex(from_hex("000006 08011a020801 000b0b 676c6f62616c5f73746570 08091200280835bbd79f11 000111 77 "
                      "08011204120208022008280835593ce535 00000000 01000000")));
}

Array counting(DType t, Dims dims) {
  Array a = Array::zeros(t, std::move(dims));
  auto* p = static_cast<unsigned char*>(a.data());
  for (size_t i = 0; i < a.bytes(); ++i)
    p[i] = static_cast<unsigned char>(t == DType::kBool ? i & 1 : i * 7 + 1);
  return a;
}

bool same(const Array& a, const Array& b) {
  if (a.dtype() != b.dtype() || a.dims() != b.dims()) return false;
  if (a.dtype() == DType::kString) return a.string_values() == b.string_values();
  return a.bytes() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

TEST(Bundle, EveryTypeComesBack) {
  const TempFolder t;
  std::map<std::string, Array> all;
  for (int number = 1; number <= 23; ++number) {
    const auto type = static_cast<DType>(number);
    if (graph::dtype_size(type) == 0) continue;
    all[cat("t", number)] = counting(type, {3, 2});
    all[cat("t", number, "/scalar")] = counting(type, {});
    all[cat("t", number, "/empty")] = counting(type, {0, 4});
  }
  all["s"] = Array::strings({2, 2}, {"", "a", std::string(300, 'x'), std::string("\0\xff", 2)});
  all["s/scalar"] = Array::strings({}, {"one"});
  all["s/empty"] = Array::strings({0}, {});
  BundleWriter w(t / "m");
  for (const auto& [name, value] : all) w.add(name, value);
  w.finish();
  const BundleReader r(t / "m");
  EXPECT_EQ(r.entries().size(), all.size());
  for (const auto& [name, value] : all) EXPECT_TRUE(same(r.read(name), value)) << name;
}

TEST(Bundle, SliceKeysAreTheReferenceVectors) {
  EXPECT_EQ(to_hex(slice_key("emb", {{0, 5}, {0, 8}})), "00656d620001010280858088");
  EXPECT_EQ(to_hex(slice_key("emb", {{5, 5}, {0, -1}})), "00656d62000101028585807f");
  EXPECT_EQ(to_hex(slice_key("w", {{100, 1000}, {0, 64}})),
            to_hex(from_hex("0077000101 02 c064 c3e8 80 c040")));
}

TEST(Bundle, PartitionedTensorsAreReadWholeAndByAnyPart) {
  const TempFolder t;
  const Array whole = counting(DType::kInt32, {5, 4});
  save_tensors(t / "m", {"e", "e", "plain", "e"}, {"5 4 0,2:-", "5 4 2,1:-", "", "5 4 3,2:0,4"},
               {extract_slice(whole, {{0, 2}, {0, 4}}), extract_slice(whole, {{2, 1}, {0, 4}}), whole,
                extract_slice(whole, {{3, 2}, {0, 4}})});
  const BundleReader r(t / "m");
  EXPECT_EQ(r.entries().size(), 2u);
  EXPECT_TRUE(same(r.read("e"), whole));
  EXPECT_TRUE(same(r.read_slice("e", {{2, 1}, {0, -1}}), extract_slice(whole, {{2, 1}, {0, 4}})));
  EXPECT_TRUE(same(r.read_slice("e", {{1, 3}, {1, 2}}), extract_slice(whole, {{1, 3}, {1, 2}})));
  EXPECT_TRUE(same(r.read_slice("plain", {{1, 3}, {1, 2}}), extract_slice(whole, {{1, 3}, {1, 2}})));
  save_tensors(t / "gap", {"e"}, {"5 4 0,2:-"}, {extract_slice(whole, {{0, 2}, {0, 4}})});
  std::string text;
  EXPECT_EQ(error_of([&] { BundleReader(t / "gap").read("e"); }, &text), Code::kInvalidArgument);
  EXPECT_NE(text.find("Does not have sufficient slices"), std::string::npos);
  for (const char* bad : {"5 4 0,6:-", "5 4 -", "5 x -:-", "5 4 0:-", "5 4 -1,2:-"})
    EXPECT_EQ(error_of([&] { parse_slice_spec(bad); }), Code::kInvalidArgument) << bad;
}

TEST(Bundle, ASecondSaveReplacesAndAnAbandonedOneLeavesNothing) {
  const TempFolder t;
  save_tensors(t / "m", {"a"}, {}, {Array::scalar(1.0f)});
  {
    BundleWriter w(t / "m");
    w.add("a", Array::scalar(2.0f));
    EXPECT_EQ(error_of([&] { w.add("a", Array::scalar(3.0f)); }), Code::kInvalidArgument);
  }
  EXPECT_EQ(BundleReader(t / "m").read("a").item<float>(), 1.0f);
  size_t files = 0;
  for ([[maybe_unused]] const auto& f : std::filesystem::directory_iterator(t.path())) ++files;
  EXPECT_EQ(files, 2u);
  save_tensors(t / "m", {"b"}, {}, {Array::scalar(4.0f)});
  EXPECT_EQ(BundleReader(t / "m").read("b").item<float>(), 4.0f);
  EXPECT_EQ(BundleReader(t / "m").find("a"), nullptr);
}

// Case S08.
TEST(DamagedBundle, CutsAndFlippedBytesAreDataLossNamingTheFile) {
  const TempFolder t;
  save_tensors(t / "m", {"s", "w"}, {},
               {Array::strings({3}, {"ab", "", "c"}), Array::from<float>({2}, {1, 2})});
  const std::string data_path = shard_path(t / "m", 0, 1), data = read_file(data_path);
  const std::string index = read_file(t / "m.index");
  auto read_all = [&] {
    const BundleReader r(t / "m");
    for (const auto& [name, entry] : r.entries()) r.read(name);
  };
  std::string text;
  write_file_atomically(data_path, data.substr(0, data.size() - 1));
  EXPECT_EQ(error_of(read_all, &text), Code::kDataLoss);
  EXPECT_NE(text.find(data_path), std::string::npos);
  for (size_t i = 0; i < data.size(); ++i) {
    std::string bad = data;
    bad[i] = static_cast<char>(bad[i] ^ 4);
    write_file_atomically(data_path, bad);
    EXPECT_EQ(error_of(read_all, &text), Code::kDataLoss) << i;
  }
  write_file_atomically(data_path, data);
  write_file_atomically(t / "m.index", index.substr(0, 10));
  EXPECT_EQ(error_of(read_all, &text), Code::kDataLoss);
  EXPECT_NE(text.find(t / "m.index"), std::string::npos);
  std::filesystem::remove(t / "m.index");
  EXPECT_EQ(error_of(read_all), Code::kNotFound);
}

// Case S09: an index that is whole but lies.
TEST(DamagedBundle, CraftedEntriesAllocateNothing) {
  const TempFolder t;
  write_file_atomically(shard_path(t / "m", 0, 1), std::string(64, 'x'));
  auto with = [&](const BundleEntry& e) {
    TableBuilder b;
    b.add("", encode_bundle_header(1));
    b.add("w", encode_bundle_entry(e));
    write_file_atomically(t / "m.index", b.finish());
    return error_of([&] { BundleReader(t / "m").read("w"); });
  };
  const int64_t huge = int64_t{1} << 40;
  EXPECT_EQ(with({.dtype = DType::kFloat, .dims = {huge, huge}, .size = 8}), Code::kDataLoss);
  EXPECT_EQ(with({.dtype = DType::kFloat, .dims = {huge}, .size = huge * 4}), Code::kDataLoss);
  EXPECT_EQ(with({.dtype = DType::kString, .dims = {huge}, .size = huge * 4}), Code::kDataLoss);
  EXPECT_EQ(with({.dtype = DType::kString, .dims = {huge}, .size = 8}), Code::kDataLoss);
  EXPECT_EQ(with({.dtype = DType::kFloat, .dims = {2}, .size = 4}), Code::kDataLoss);
  EXPECT_EQ(with({.dtype = DType::kFloat, .dims = {-2}, .size = 8}), Code::kDataLoss);
  EXPECT_EQ(with({.dtype = DType::kFloat, .dims = {2}, .offset = -1, .size = 8}), Code::kDataLoss);
  EXPECT_EQ(with({.dtype = DType::kFloat, .dims = {2}, .offset = INT64_MAX, .size = 8}), Code::kDataLoss);
  EXPECT_EQ(with({.dtype = DType::kFloat, .dims = {2}, .shard = 3, .size = 8}), Code::kDataLoss);
  EXPECT_EQ(with({.dtype = static_cast<DType>(77), .dims = {2}, .size = 8}), Code::kDataLoss);
  EXPECT_EQ(with({.dtype = DType::kFloat, .dims = {huge}, .slices = {{{0, -1}}}}), Code::kInvalidArgument);
}

// Case S10: the disk fills during a save.
TEST(Bundle, AFailedSaveKeepsTheFormerCheckpoint) {
  const TempFolder t;
  save_tensors(t / "m", {"a"}, {}, {Array::scalar(1.0f)});
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  rlimit small = old;
  small.rlim_cur = 1 << 20;
  setrlimit(RLIMIT_FSIZE, &small);
  std::string text;
  const Code code =
      error_of([&] { save_tensors(t / "m", {"a"}, {}, {Array::zeros(DType::kFloat, {2 << 20})}); }, &text);
  setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_EQ(code, Code::kResourceExhausted) << text;
  EXPECT_NE(text.find(t / "m"), std::string::npos);
  EXPECT_EQ(BundleReader(t / "m").read("a").item<float>(), 1.0f);
  size_t files = 0;
  for ([[maybe_unused]] const auto& f : std::filesystem::directory_iterator(t.path())) ++files;
  EXPECT_EQ(files, 2u) << "temporary files are gone";
}

// Case S12.
TEST(Restore, OneErrorNamesEverythingThatIsMissing) {
  const TempFolder t;
  save_tensors(t / "m", {"conv/w", "b"}, {}, {Array::scalar(1.0f), Array::scalar(2.0f)});
  std::string text;
  EXPECT_EQ(
      error_of(
          [&] {
            restore_tensors(t / "m", {"conv1/w", "b", "fc", "x"}, {}, std::vector<DType>(4, DType::kFloat));
          },
          &text),
      Code::kNotFound);
  for (const char* part :
       {"Key conv1/w not found in checkpoint", "Key fc not found", "Key x not found", "'conv/w'"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
  EXPECT_NE(text.find(t / "m"), std::string::npos);
  EXPECT_EQ(error_of([&] { restore_tensors(t / "m", {"b"}, {}, {DType::kDouble}); }, &text),
            Code::kInvalidArgument);
  EXPECT_NE(text.find("tensor_name = b; expected dtype double does not equal original dtype float"),
            std::string::npos);
  EXPECT_EQ(restore_tensors(t / "m", {"b"}, {""}, {graph::make_ref(DType::kFloat)})[0].item<float>(), 2.0f);
}

// Case S01.
TEST(CheckpointState, SurvivesMovingTheDirectory) {
  const TempFolder t;
  std::filesystem::create_directory(t / "a");
  save_tensors(t / "a/m-5", {"v"}, {}, {Array::scalar(5.0f)});
  const CheckpointState s{.model_checkpoint_path = t / "a/m-5",
                          .all_model_checkpoint_paths = {t / "a/m-1", t / "a/m-5"},
                          .timestamps = {1.5, 2.5}};
  write_checkpoint_state(t / "a", s);
  EXPECT_EQ(read_checkpoint_state(t / "a"), s);
  EXPECT_EQ(read_file(t / "a/checkpoint").substr(0, 31), "model_checkpoint_path: \"m-5\"\nal");
  std::filesystem::rename(t / "a", t / "b");
  EXPECT_EQ(latest_checkpoint(t / "b"), t / "b/m-5");
  std::filesystem::remove(t / "b/m-5.index");
  EXPECT_EQ(latest_checkpoint(t / "b"), "");
  write_file_atomically(t / "b/checkpoint", "nonsense {");
  EXPECT_EQ(read_checkpoint_state(t / "b"), std::nullopt);
  EXPECT_EQ(read_checkpoint_state(t / "nowhere"), std::nullopt);
}

}  // namespace
}  // namespace sluice::runtime::io
