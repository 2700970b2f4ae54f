// Checkpoints as files: several data files, saving over one, merging by renaming, V1.
#include <sys/stat.h>

#include <fstream>

#include "graph/proto/checkpoint.pb.h"
#include "runtime/io/bundle.h"
#include "runtime/io/checkpoint.h"
#include "runtime/io/file.h"
#include "runtime/io/table.h"
#include "tests/runtime/io_test_util.h"

namespace sluice::runtime::io {
namespace {

std::vector<std::string> files(const TempFolder& t) {
  std::vector<std::string> out;
  for (const auto& f : std::filesystem::directory_iterator(t.path()))
    out.push_back(f.path().filename().string());
  std::sort(out.begin(), out.end());
  return out;
}
using Names = std::vector<std::string>;

TEST(Shards, TensorsLieWhereTheyWerePut) {
  const TempFolder t;
  BundleWriter w(t / "m", 3);
  w.add("a", Array::scalar(1.0f), 2);
  w.add("b", Array::scalar(2.0f), 0);
  w.add_slice("e", {4}, {{0, 1}}, TensorView::of(Array::from<float>({1}, {5})), 1);
  w.add_slice("e", {4}, {{1, 3}}, TensorView::of(Array::from<float>({3}, {6, 7, 8})), 2);
  w.finish();
  EXPECT_EQ(files(t),
            (Names{"m.data-00000-of-00003", "m.data-00001-of-00003", "m.data-00002-of-00003", "m.index"}));
  const BundleReader r(t / "m");
  EXPECT_EQ(r.num_shards(), 3);
  EXPECT_EQ(r.get("a").shard, 2);
  EXPECT_EQ(r.read("a").item<float>() + r.read("b").item<float>(), 3);
  EXPECT_EQ(r.read("e").as<float>()[3], 8);
  r.verify();
}

// A crash between the renames of a save over an existing checkpoint must leave the former one whole.
TEST(Shards, SavingOverACheckpointTakesOtherDataFiles) {
  const TempFolder t;
  save_tensors(t / "m", {"a"}, {}, {Array::scalar(1.0f)});
  const std::string former_index = read_file(t / "m.index");
  const std::string former_data = read_file(shard_path(t / "m", 0, 1));
  save_tensors(t / "m", {"a"}, {}, {Array::scalar(2.0f)});
  EXPECT_EQ(files(t), (Names{"m.data-00000-of-00002", "m.data-00001-of-00002", "m.index"}))
      << "and the former are gone";
  EXPECT_EQ(BundleReader(t / "m").read("a").item<float>(), 2.0f);
  // As after a crash before the index was renamed: new data are there, the index is the former one.
  write_file_atomically(t / "m.index", former_index);
  write_file_atomically(shard_path(t / "m", 0, 1), former_data);
  EXPECT_EQ(BundleReader(t / "m").read("a").item<float>(), 1.0f);
  save_tensors(t / "m", {"a"}, {}, {Array::scalar(3.0f)});
  EXPECT_EQ(BundleReader(t / "m").read("a").item<float>(), 3.0f);
  save_tensors(t / "m", {"a"}, {}, {Array::scalar(4.0f)});
  EXPECT_EQ(files(t), (Names{"m.data-00000-of-00001", "m.index"}));
  EXPECT_EQ(BundleReader(t / "m").read("a").item<float>(), 4.0f);
}

ino_t inode(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}

TEST(Merge, RenamesDataAndWritesOneIndex) {
  const TempFolder t;
  save_tensors(t / "a", {"x", "e"}, {"", "4 0,1"}, {Array::scalar(1.0f), Array::from<float>({1}, {5})});
  save_tensors(t / "b", {"y", "e"}, {"", "4 1,3"}, {Array::scalar(2.0f), Array::from<float>({3}, {6, 7, 8})});
  const ino_t a = inode(shard_path(t / "a", 0, 1)), b = inode(shard_path(t / "b", 0, 1));
  merge_bundles({t / "a", t / "b"}, t / "m");
  EXPECT_EQ(files(t), (Names{"m.data-00000-of-00002", "m.data-00001-of-00002", "m.index"}));
  EXPECT_EQ(inode(shard_path(t / "m", 0, 2)), a) << "not rewritten";
  EXPECT_EQ(inode(shard_path(t / "m", 1, 2)), b);
  const BundleReader r(t / "m");
  EXPECT_EQ(r.read("x").item<float>() + r.read("y").item<float>(), 3);
  EXPECT_EQ(r.read("e").as<float>()[2], 7);
  r.verify();
}

TEST(Merge, DuplicatesLeaveEverythingAsItWas) {
  const TempFolder t;
  save_tensors(t / "a", {"x"}, {}, {Array::scalar(1.0f)});
  save_tensors(t / "b", {"x"}, {}, {Array::scalar(2.0f)});
  const Names before = files(t);
  std::string text;
  EXPECT_EQ(error_of([&] { merge_bundles({t / "a", t / "b"}, t / "m"); }, &text), Code::kInvalidArgument);
  EXPECT_NE(text.find("Duplicate tensor keyed by x encountered, when merging prefix: " + (t / "b")),
            std::string::npos);
  EXPECT_EQ(files(t), before);
  EXPECT_EQ(error_of([&] { merge_bundles({}, t / "m"); }), Code::kInvalidArgument);
  EXPECT_EQ(error_of([&] { merge_bundles({t / "none"}, t / "m"); }), Code::kNotFound);
}

TEST(Merge, OverACheckpointKeepsTheFormerUntilTheIndexIsThere) {
  const TempFolder t;
  save_tensors(t / "m", {"x"}, {}, {Array::scalar(1.0f)});
  save_tensors(t / "a", {"x"}, {}, {Array::scalar(2.0f)});
  merge_bundles({t / "a"}, t / "m");
  EXPECT_EQ(BundleReader(t / "m").read("x").item<float>(), 2.0f);
  EXPECT_EQ(files(t), (Names{"m.data-00000-of-00002", "m.data-00001-of-00002", "m.index"}));
}

TEST(Remove, TakesOneCheckpointAndNoOther) {
  const TempFolder t;
  for (const char* name : {"m-1", "m-10"}) save_tensors(t / name, {"x"}, {}, {Array::scalar(1.0f)});
  std::ofstream(t / "m-1.meta") << "x";
  // Files of others: records in shards, a program.
  std::ofstream(t / "m-1-00000-of-00002") << "x";
  std::ofstream(t / "m-1") << "a program of that name";
  remove_checkpoint_files(t / "m-1");
  EXPECT_EQ(files(t), (Names{"m-1", "m-1-00000-of-00002", "m-10.data-00000-of-00001", "m-10.index"}));
  remove_checkpoint_files(t / "m-1");
  EXPECT_TRUE(file_exists(t / "m-1"));
  TableBuilder v1;
  v1.add("", "x");
  write_file_atomically(t / "m-1", v1.finish());
  remove_checkpoint_files(t / "m-1");
  EXPECT_FALSE(file_exists(t / "m-1"));
}

std::string v1_index() { return from_hex("0a1a0a090a01611200180122000a090a016212001801220012020801"); }
std::string v1_data(char name, float value) {
  proto::SavedTensorSlices s;
  s.mutable_data()->set_name(std::string(1, name));
  s.mutable_data()->mutable_slice();
  s.mutable_data()->mutable_data()->add_float_val(value);
  return s.SerializeAsString();
}

TEST(V1, TheReferenceVectorIsRead) {
  const TempFolder t;
  EXPECT_EQ(to_hex(v1_data('a', 0.5f)), "120d0a016112001a062a040000003f");
  TableBuilder table;
  table.add("", v1_index());
  table.add(from_hex("0061000100"), v1_data('a', 0.5f));
  table.add(from_hex("0062000100"), v1_data('b', 2.0f));
  const std::string bytes = table.finish();
  for (const char* name : {"export", "export-00000-of-00001"}) {
    write_file_atomically(t / name, bytes);
    EXPECT_TRUE(checkpoint_exists(t / "export")) << name;
    const BundleReader r(t / "export");
    EXPECT_TRUE(r.is_v1());
    EXPECT_EQ(r.entries().size(), 2u);
    EXPECT_EQ(r.read("a").item<float>(), 0.5f);
    EXPECT_EQ(r.read("b").item<float>(), 2.0f);
    r.verify();
    std::filesystem::remove(t / name);
  }
  write_file_atomically(t / "export-00000-of-00001", bytes);
  EXPECT_EQ(BundleReader(t / "export-?\?\?\?\?-of-00001").read("b").item<float>(), 2.0f);
}

// Two files, a partitioned tensor, several types.
TEST(V1, ShardsAndSlicesArePutTogether) {
  const TempFolder t;
  for (int file = 0; file < 2; ++file) {
    proto::SavedTensorSlices index;
    auto* e = index.mutable_meta()->add_tensor();
    e->set_name("e");
    e->set_type(proto::DT_INT64);
    e->mutable_shape()->add_dim()->set_size(3);
    auto* extent = e->add_slice()->add_extent();
    extent->set_start(file == 0 ? 0 : 2);
    extent->set_length(file == 0 ? 2 : 1);
    proto::SavedTensorSlices data;
    data.mutable_data()->set_name("e");
    for (int i = file * 2; i < 2 + file; ++i) data.mutable_data()->mutable_data()->add_int64_val(-i);
    TableBuilder table;
    const std::string path = t / cat("m-0000", file, "-of-00002");
    const TensorSlice slice{{file == 0 ? 0 : 2, file == 0 ? 2 : 1}};
    if (file == 1) {
      auto* s = index.mutable_meta()->add_tensor();
      s->set_name("s");
      s->set_type(proto::DT_STRING);
      s->mutable_shape()->add_dim()->set_size(2);
      s->add_slice()->add_extent();
    }
    table.add("", index.SerializeAsString());
    table.add(slice_key("e", slice), data.SerializeAsString());
    if (file == 1) {
      proto::SavedTensorSlices s;
      s.mutable_data()->mutable_data()->add_string_val("one");
      s.mutable_data()->mutable_data()->add_string_val("two");
      table.add(slice_key("s", {{0, -1}}), s.SerializeAsString());
    }
    write_file_atomically(path, table.finish());
  }
  const BundleReader r(t / "m");
  const Array e = r.read("e");
  EXPECT_EQ(std::vector<int64_t>(e.as<int64_t>().begin(), e.as<int64_t>().end()),
            (std::vector<int64_t>{0, -1, -2}));
  EXPECT_EQ(r.read_slice("e", {{1, 2}}).as<int64_t>()[1], -2);
  EXPECT_EQ(r.read("s").string_values(), (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(restore_tensors(t / "m", {"s"}, {}, {DType::kString})[0].elements(), 2);
}

TEST(V1, DamageIsDataLossNamingTheFile) {
  const TempFolder t;
  auto with = [&](const std::string& index, const std::string& data) {
    TableBuilder table;
    table.add("", index);
    table.add(from_hex("0061000100"), data);
    write_file_atomically(t / "m", table.finish());
    std::string text;
    const Code code = error_of([&] { BundleReader(t / "m").verify(); }, &text);
    EXPECT_NE(text.find(t / "m"), std::string::npos) << text;
    return code;
  };
  EXPECT_EQ(with(v1_index(), v1_data('a', 1)), Code::kDataLoss) << "b is absent";
  EXPECT_EQ(with("\xff", v1_data('a', 1)), Code::kDataLoss);
  proto::SavedTensorSlices one;
  ASSERT_TRUE(one.ParseFromString(v1_index()));
  one.mutable_meta()->mutable_tensor()->RemoveLast();
  EXPECT_EQ(with(one.SerializeAsString(), "\xff"), Code::kDataLoss);
  EXPECT_EQ(with(one.SerializeAsString(), proto::SavedTensorSlices().SerializeAsString()), Code::kDataLoss);
  one.mutable_meta()->mutable_tensor(0)->mutable_shape()->add_dim()->set_size(int64_t{1} << 40);
  one.mutable_meta()->mutable_tensor(0)->clear_slice();
  EXPECT_EQ(with(one.SerializeAsString(), v1_data('a', 1)), Code::kDataLoss) << "no slice";
  TableBuilder bare;
  bare.add("x", "y");
  write_file_atomically(t / "m", bare.finish());
  EXPECT_EQ(error_of([&] { BundleReader r(t / "m"); }), Code::kDataLoss);
  write_file_atomically(t / "m", "not a table");
  EXPECT_EQ(error_of([&] { BundleReader r(t / "m"); }), Code::kDataLoss);
}

TEST(ObjectGraph, ListsTheNamesOfVariables) {
  const TempFolder t;
  proto::TrackableObjectGraph graph;
  auto* a = graph.add_nodes()->add_attributes();
  a->set_name("VARIABLE_VALUE");
  a->set_full_name("dense/kernel");
  a->set_checkpoint_key("model/kernel/.ATTRIBUTES/VARIABLE_VALUE");
  graph.add_nodes()->add_attributes()->set_checkpoint_key("nameless");
  const std::string key = "_CHECKPOINTABLE_OBJECT_GRAPH";
  save_tensors(t / "m", {key}, {}, {Array::strings({}, {graph.SerializeAsString()})});
  EXPECT_EQ(
      object_graph_names(BundleReader(t / "m")),
      (std::map<std::string, std::string>{{"dense/kernel", "model/kernel/.ATTRIBUTES/VARIABLE_VALUE"}}));
  save_tensors(t / "bad", {key}, {}, {Array::strings({}, {"\xff"})});
  EXPECT_EQ(error_of([&] { object_graph_names(BundleReader(t / "bad")); }), Code::kDataLoss);
  save_tensors(t / "none", {"a"}, {}, {Array::scalar(1.0f)});
  EXPECT_TRUE(object_graph_names(BundleReader(t / "none")).empty());
}

}  // namespace
}  // namespace sluice::runtime::io
