// The index table: the format's worked vector byte for byte, many blocks, compressed blocks, damage.
#include "runtime/io/table.h"

#include <snappy.h>

#include "runtime/io/crc32c.h"
#include "runtime/io/varint.h"
#include "tests/runtime/io_test_util.h"

namespace sluice::runtime::io {
namespace {

constexpr const char* kIndex =
    "000006 08011a020801 000b0b 676c6f62616c5f73746570 08091200280835bbd79f11 000111 77 "
    "08011204120208022008280835593ce535"
    "00000000 01000000 00 0bcf2433 00000000 01000000 00 c0f2a1b0 00010278003f 00000000 01000000 00 f84d77f5"
    "4408 510e 000000000000000000000000000000000000000000000000000000000000000000000000 57fb808b247547db";

TEST(Table, WritesTheReferenceVector) {
  TableBuilder b;
  b.add("", from_hex("08011a020801"));
  b.add("global_step", from_hex("08091200280835bbd79f11"));
  b.add("w", from_hex("08011204120208022008280835593ce535"));
  EXPECT_EQ(to_hex(b.finish()), to_hex(from_hex(kIndex)));
}

TEST(Table, ReadsTheReferenceVector) {
  const TableEntries e = read_table(from_hex(kIndex), "t");
  ASSERT_EQ(e.size(), 3u);
  EXPECT_EQ(e[1].first, "global_step");
  EXPECT_EQ(to_hex(e[0].second), "08011a020801");
}

TEST(Table, ManyBlocksAndLongValuesComeBack) {
  TableBuilder b;
  TableEntries want;
  for (int i = 0; i < 30000; ++i) {
    char key[32];
    std::snprintf(key, sizeof key, "layer_%05d/kernel", i);
    want.emplace_back(key, std::string(static_cast<size_t>(i % 60), static_cast<char>(i)));
  }
  want.emplace_back("layer_z", std::string(600000, 'v'));
  want.emplace_back("layer_zz", "");
  for (const auto& [k, v] : want) b.add(k, v);
  EXPECT_TRUE(read_table(b.finish(), "t") == want);
}

TEST(Table, KeysMustIncrease) {
  TableBuilder b;
  b.add("b", "");
  EXPECT_EQ(error_of([&] { b.add("b", ""); }), Code::kInvalidArgument);
  EXPECT_EQ(error_of([&] { b.add("a", ""); }), Code::kInvalidArgument);
}

TEST(Table, EveryFlippedByteOfABlockAndEveryCutIsFound) {
  const std::string good = from_hex(kIndex);
  for (size_t i = 0; i < good.size(); ++i) {
    if (i >= good.size() - 44 && i < good.size() - 8) continue;  // the footer's padding says nothing
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x41);
    EXPECT_EQ(error_of([&] { read_table(bad, "t"); }), Code::kDataLoss) << i;
  }
  for (size_t n = 0; n < good.size(); ++n)
    EXPECT_EQ(error_of([&] { read_table(good.substr(0, n), "t"); }), Code::kDataLoss) << n;
  std::string text;
  error_of([] { read_table(std::string(100, 'x'), "file.index"); }, &text);
  EXPECT_EQ(text, "file.index: not an sstable (bad magic number)");
}

// A table around one data block, its index pointing `times` at it.
std::string table_of(std::string block, char type, int times = 1) {
  auto with_trailer = [](std::string b, char t) {
    b.push_back(t);
    const uint32_t crc = mask_crc(crc32c(b));
    return b.append(reinterpret_cast<const char*>(&crc), 4);
  };
  const std::string one_restart = from_hex("0000000001000000");
  std::string index;
  for (int i = 0; i < times; ++i) {
    std::string handle;
    put_varint(&handle, 0), put_varint(&handle, block.size());
    index.push_back('\0'), index.push_back(1), put_varint(&index, handle.size());
    index.push_back(static_cast<char>('a' + i));
    index += handle;
  }
  index += one_restart;
  const std::string data = with_trailer(block, type);
  std::string footer;
  put_varint(&footer, data.size()), put_varint(&footer, one_restart.size());
  put_varint(&footer, data.size() + one_restart.size() + 5), put_varint(&footer, index.size());
  footer.resize(40, '\0');
  return data + with_trailer(one_restart, 0) + with_trailer(index, 0) + footer + from_hex("57fb808b247547db");
}

TEST(Table, CompressedBlocksAreRead) {
  const std::string block = from_hex("000103 6b 616263 0000000001000000");
  std::string packed;
  snappy::Compress(block.data(), block.size(), &packed);
  const TableEntries e = read_table(table_of(packed, 1), "t");
  ASSERT_EQ(e.size(), 1u);
  EXPECT_EQ(e[0].first, "k");
  EXPECT_EQ(e[0].second, "abc");
}

TEST(Table, ClaimsThatTheFileDoesNotCoverAreRefused) {
  const std::string restarts = from_hex("0000000001000000");
  auto code = [&](const std::string& b, char type = 0, int times = 1) {
    return error_of([&] { read_table(table_of(b, type, times), "t"); });
  };
  EXPECT_EQ(code(from_hex("000103 6b 616263") + restarts), Code::kOk);
  EXPECT_EQ(code(from_hex("050103 6b 616263") + restarts), Code::kDataLoss)
      << "shares bytes of a key that is not there";
  EXPECT_EQ(code(from_hex("00ffffffff0f03 6b") + restarts), Code::kDataLoss) << "key longer than the block";
  EXPECT_EQ(code(from_hex("0001ffffffff0f 6b") + restarts), Code::kDataLoss) << "value longer than the block";
  EXPECT_EQ(code(from_hex("000100 6b 000100 6b") + restarts), Code::kDataLoss) << "keys not increasing";
  EXPECT_EQ(code(from_hex("00000000ffffffff")), Code::kDataLoss) << "more restarts than bytes";
  EXPECT_EQ(code(from_hex("000103 6b 616263") + restarts, 0, 2), Code::kDataLoss) << "one block named twice";
  EXPECT_EQ(code(from_hex("000103 6b 616263") + restarts, 7), Code::kDataLoss) << "unknown compression";
  EXPECT_EQ(code(from_hex("ffffffff0f 00"), 1), Code::kDataLoss) << "4 GiB out of two bytes";
  // Each entry repeats a long key by two bytes: what they unfold to is bounded.
  std::string bomb;
  bomb.push_back('\0'), put_varint(&bomb, 100000), bomb.push_back('\0'), bomb += std::string(100000, 'k');
  for (int i = 0; i < 100000; ++i)
    put_varint(&bomb, 100000 + i), bomb.push_back(1), bomb.push_back('\0'), bomb += 'k';
  EXPECT_EQ(code(bomb + restarts), Code::kDataLoss);
}

}  // namespace
}  // namespace sluice::runtime::io
