// GraphDef and MetaGraphDef: round trips, TensorFlow's rules for constants and inputs, and files that lie.
#include "graph/graphdef.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>

#include "graph/support/file.h"
#include "graph/verify.h"
#include "tests/graph/toy_ops.h"
#include "tests/support/temp_folder.h"

namespace sluice::graph {
namespace {

OpRegistry loop_ops() {
  OpRegistry r = toy_ops();
  r.add({.name = "Merge",
         .inputs = {"inputs: N * T"},
         .outputs = {"output: T", "value_index: int32"},
         .attrs = {"T: type", "N: int >= 1"},
         .doc = "The first value that comes.",
         .traits = kLoopMerge,
         .infer = unknown_outputs});
  r.add({.name = "NextIteration",
         .inputs = {"data: T"},
         .outputs = {"output: T"},
         .attrs = {"T: type"},
         .doc = "Hands a value to the next turn.",
         .traits = kLoopBack,
         .infer = same_shape});
  r.add({.name = "Spread",
         .inputs = {"x: T"},
         .outputs = {"y: N * T"},
         .attrs = {"T: type", "N: int >= 1"},
         .doc = "Copies.",
         .infer = unknown_outputs});
  return r;
}

// The error of importing this text, "" when it loads.
std::string import_error(const std::string& text, Code* code = nullptr) {
  Graph g(loop_ops());
  try {
    graph_from_bytes(g, text, FileFormat::kText);
  } catch (const Error& e) {
    if (code) *code = e.code();
    return e.what();
  }
  return "";
}

std::string constant(const std::string& name, const std::string& tensor,
                     const std::string& dtype = "DT_FLOAT") {
  return "node { name: '" + name + "' op: 'Const' attr { key: 'dtype' value { type: " + dtype +
         " } } attr { key: 'value' value { tensor { " + tensor + " } } } }\n";
}

std::string in_node(const std::string& name, const std::string& dtype = "DT_FLOAT") {
  return "node { name: '" + name + "' op: 'In' attr { key: 'dtype' value { type: " + dtype + " } } }\n";
}

std::string plus(const std::string& name, const std::string& inputs, const std::string& dtype = "DT_FLOAT") {
  return "node { name: '" + name + "' op: 'Plus' " + inputs + " attr { key: 'T' value { type: " + dtype +
         " } } }\n";
}

Literal value_of(const std::string& tensor, const std::string& dtype = "DT_FLOAT") {
  Graph g(loop_ops());
  graph_from_bytes(g, constant("c", "dtype: " + dtype + " " + tensor, dtype), FileFormat::kText);
  return g.node("c").attr<Literal>("value");
}

std::string temporary(const char* name) {
  static const testing_support::TempFolder folder;
  return folder / name;
}

void build_all_kinds(Graph& g) {
  FuncAttr f{.name = "fn", .attrs = std::make_shared<AttrMap>(AttrMap{{"T", DType::kInt32}})};
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  Node& x = *in(g, {2, -1}).node;
  g.set_attr(x, "_s", "a\"b\n\x01");
  g.set_attr(x, "_i", int64_t{-7});
  g.set_attr(x, "_f", 1e-45f);
  g.set_attr(x, "_zero", -0.0f);
  g.set_attr(x, "_inf", -inf);
  g.set_attr(x, "_b", true);
  g.set_attr(x, "_sh", Shape());
  g.set_attr(x, "_fn", f);
  g.set_attr(x, "_ph", PlaceholderAttr{"T"});
  g.set_attr(x, "_empty", EmptyList{});
  g.set_attr(x, "_ls", std::vector<std::string>{"", "b"});
  g.set_attr(x, "_li", std::vector<int64_t>{1, -1});
  g.set_attr(x, "_lf", std::vector<float>{0.1f, inf});
  g.set_attr(x, "_lb", std::vector<bool>{true, false});
  g.set_attr(x, "_lt", std::vector<DType>{DType::kFloat, make_ref(DType::kInt8)});
  g.set_attr(x, "_lsh", std::vector<Shape>{Shape(), Shape{3}});
  g.set_attr(x, "_ll", std::vector<Literal>{Literal::scalar(2.5), Literal::strings({"p", "q"})});
  g.set_attr(x, "_lfn", std::vector<FuncAttr>{f, FuncAttr{.name = "g"}});
  g.set_attr(x, "_nan", Literal::vector<float>({nan, -nan, inf, -0.0f, 1e-45f, 1.0f}));
  g.set_attr(x, "_u64", Literal::scalar<uint64_t>(~uint64_t{0}));
  g.set_attr(x, "_i8", Literal::vector<int8_t>({-128, -128}));
  g.set_attr(x, "_bool", Literal::vector<bool>({true, true, true}));
  g.set_attr(x, "_none", Literal::zeros(DType::kFloat, {0, 3}));
  Node& c = g.add({.op = "Const",
                   .name = "c",
                   .attrs = {{"dtype", DType::kFloat}, {"value", Literal::scalar(1.0f)}},
                   .device = "/device:CPU:0"});
  Node& many = g.add({.op = "Many", .inputs = {x.output(), c.output()}});
  g.add({.op = "Plus", .inputs = {many.output(1), c.output()}, .control_inputs = {&x}});
}

TEST(GraphDefRoundTrip, KeepsEveryAttrKindInBothForms) {
  Graph g(toy_ops());
  build_all_kinds(g);
  for (const FileFormat format : {FileFormat::kBinary, FileFormat::kText}) {
    const std::string bytes = graph_to_bytes(g, format);
    Graph back(toy_ops());
    graph_from_bytes(back, bytes, FileFormat::kAuto);
    for (const Node* n : g.nodes()) EXPECT_EQ(back.node(n->name()).attrs(), n->attrs()) << n->name();
    EXPECT_EQ(back.node("c").device(), "/device:CPU:0");
    EXPECT_EQ(graph_to_bytes(back, format), bytes);
    EXPECT_TRUE(verify(back).empty());
  }
}

TEST(GraphDefRoundTrip, FilesAreTextWhenTheNameEndsInTxt) {
  Graph g(toy_ops());
  build_all_kinds(g);
  write_graph_file(g, temporary("g.pbtxt"));
  write_graph_file(g, temporary("g.pb"));
  EXPECT_EQ(read_file(temporary("g.pbtxt")).substr(0, 4), "node");
  for (const char* name : {"g.pbtxt", "g.pb"}) {
    Graph back(toy_ops());
    read_graph_file(back, temporary(name));
    EXPECT_EQ(graph_to_bytes(back), graph_to_bytes(g));
  }
}

TEST(GraphDefRoundTrip, MoreThan64MegabytesWorks) {
  Graph g(toy_ops());
  std::vector<std::byte> big(70 << 20);
  for (size_t i = 0; i < big.size(); i += 4) big[i] = static_cast<std::byte>(i >> 12);
  g.add({.op = "Const",
         .name = "c",
         .attrs = {{"dtype", DType::kFloat}, {"value", Literal(DType::kFloat, {(70 << 20) / 4}, big)}}});
  const std::string bytes = graph_to_bytes(g);
  ASSERT_GT(bytes.size(), size_t{70} << 20);
  Graph back(toy_ops());
  graph_from_bytes(back, bytes);
  EXPECT_TRUE(graph_to_bytes(back) == bytes);
}

TEST(TensorProto, RepeatsTheLastValueAndIgnoresTheRest) {
  EXPECT_EQ(value_of("tensor_shape { dim { size: 4 } } float_val: [1, 2]"),
            Literal::vector<float>({1, 2, 2, 2}));
  EXPECT_EQ(value_of("tensor_shape { dim { size: 2 } } float_val: [1, 2, 3]"),
            Literal::vector<float>({1, 2}));
  EXPECT_EQ(value_of("tensor_shape { dim { size: 2 } }"), Literal::vector<float>({0, 0}));
  EXPECT_EQ(value_of("tensor_shape { dim { size: 3 } } string_val: ['a', 'b']", "DT_STRING"),
            Literal::strings({"a", "b", "b"}));
  EXPECT_EQ(value_of("tensor_shape { dim { size: 2 } } string_val: []", "DT_STRING"),
            Literal::strings({"", ""}));
  EXPECT_EQ(value_of("tensor_shape { dim { size: 2 } } int_val: -3", "DT_INT8"),
            Literal::vector<int8_t>({-3, -3}));
  const Literal half = value_of("tensor_shape { dim { size: 2 } } half_val: 0x3c00", "DT_HALF");
  EXPECT_EQ(half.size_bytes(), 4u);
  EXPECT_EQ(half.data()[3], std::byte{0x3c});
  EXPECT_EQ(
      value_of("tensor_shape { dim { size: 2 } } tensor_content: '\\001\\000\\000\\000\\002\\000\\000\\000'",
               "DT_INT32"),
      Literal::vector<int32_t>({1, 2}));
  EXPECT_EQ(value_of("tensor_shape { dim { size: 2 } } tensor_content: '\\001\\002abc'", "DT_STRING"),
            Literal::strings({"a", "bc"}));
}

// Case D02: each is refused before the memory it asks for is taken.
TEST(HostileGraphDef, HugeOrNegativeShapesNameTheNode) {
  for (const char* tensor :
       {"dtype: DT_FLOAT tensor_shape { dim { size: 2147483647 } dim { size: 2147483647 } dim { size: 4 } } "
        "float_val: 1",
        "dtype: DT_FLOAT tensor_shape { dim { size: 4294967296 } dim { size: 4294967296 } } float_val: 1",
        "dtype: DT_FLOAT tensor_shape { dim { size: 1000000000000 } } float_val: 1",
        "dtype: DT_FLOAT tensor_shape { dim { size: 1000000000000 } }",
        "dtype: DT_FLOAT tensor_shape { dim { size: -2 } } float_val: 1",
        "dtype: DT_FLOAT tensor_shape { dim { size: -1 } } float_val: 1",
        "dtype: DT_FLOAT tensor_shape { unknown_rank: true }",
        "dtype: DT_FLOAT tensor_shape { dim { size: 2 } } tensor_content: 'abcd'",
        "dtype: DT_FLOAT tensor_shape { dim { size: 1 } } int_val: 1", "dtype: 4711", "dtype: DT_FLOAT_REF",
        "dtype: DT_RESOURCE", "float_val: 1"}) {
    EXPECT_NE(import_error(constant("bad", tensor)).find("'bad'"), std::string::npos) << tensor;
  }
  std::string deep = "dtype: DT_FLOAT tensor_shape {";
  for (int i = 0; i < 300; ++i) deep += " dim { size: 1 }";
  EXPECT_NE(import_error(constant("bad", deep + " }")).find("too many dimensions: 300"), std::string::npos);
  EXPECT_NE(import_error(constant("bad",
                                  "dtype: DT_STRING tensor_shape { dim { size: 100000000 } } string_val: '" +
                                      std::string(1000, 'x') + "'",
                                  "DT_STRING"))
                .find("2 GiB"),
            std::string::npos);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  EXPECT_LT(usage.ru_maxrss, 1 << 20) << "KiB";
}

TEST(HostileGraphDef, RepetitionIsBoundedOverTheWholeFile) {
  std::string text;  // 5 × 480 MiB of repeated zeros; nothing is allocated past the second GiB
  for (int i = 0; i < 400; ++i)
    text += constant("c" + std::to_string(i),
                     "dtype: DT_FLOAT tensor_shape { dim { size: 2000000 } } float_val: 1");
  EXPECT_NE(import_error(text).find("2 GiB"), std::string::npos);
}

TEST(HostileGraphDef, CountsOfOutputsAreBounded) {
  const std::string spread =
      in_node("x") +
      "node { name: 's' op: 'Spread' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } "
      "attr { key: 'N' value { i: 1000000000000 } } }";
  EXPECT_NE(import_error(spread).find("node 's'"), std::string::npos);
  const std::string join =
      in_node("x") + in_node("a", "DT_INT32") +
      "node { name: 'j' op: 'Join' input: 'x' input: 'x' input: 'a' attr { key: 'T' value { type: "
      "DT_FLOAT } } attr { key: 'N' value { i: 1000000000000 } } }";
  EXPECT_NE(import_error(join).find("node 'j'"), std::string::npos);
}

// Case D01.
TEST(GraphDefImport, DuplicateNamesAreRefused) {
  EXPECT_NE(import_error(in_node("a") + in_node("a")).find("Node 'a' is not unique"), std::string::npos);
}

// Case D04.
TEST(GraphDefImport, WrongArityNamesNodeOpAndCounts) {
  const std::string e = import_error(in_node("a") + plus("p", "input: 'a'"));
  EXPECT_NE(e.find("node 'p'"), std::string::npos) << e;
  EXPECT_NE(
      e.find("NodeDef expected inputs 'float, float' (2) do not match 1 inputs specified; Op<name=Plus>"),
      std::string::npos)
      << e;
}

// Case D05.
TEST(GraphDefImport, TypeMismatchNamesBothNodes) {
  const std::string e =
      import_error(in_node("a") + in_node("b", "DT_INT32") + plus("p", "input: 'a' input: 'b'"));
  EXPECT_NE(e.find("Input 1 of node p was passed int32 from b:0 incompatible with expected float."),
            std::string::npos)
      << e;
  EXPECT_NE(import_error(constant("c", "dtype: DT_INT32 int_val: 1")).find("'c'"), std::string::npos);
}

// Case D06.
TEST(GraphDefImport, BrokenEdgesNameTheNode) {
  auto has = [](const std::string& text, const std::string& part) {
    const std::string e = import_error(text);
    EXPECT_NE(e.find(part), std::string::npos) << e;
  };
  has(in_node("a") + plus("p", "input: 'a' input: 'zzz:0'"), "node 'p': Unknown input node 'zzz:0'");
  has(in_node("a") + plus("p", "input: 'a' input: 'a:7'"),
      "Connecting to invalid output 7 of source node a which has 1 outputs.");
  has(in_node("a") + plus("p", "input: '^a' input: 'a' input: 'a'"),
      "All control inputs must follow all data inputs");
  has(plus("a", "input: 'b' input: 'b'") + plus("b", "input: 'a' input: 'a'") +
          plus("z", "input: 'b' input: 'b'"),
      "is on a cycle");
  has(in_node("a") + plus("p", "input: 'a' input: 'a:-1'"), "'a:-1' is not of the form");
  has(in_node("a") + plus("p", "input: 'a' input: 'a:99999999999'"), "is not of the form");
  has(in_node("a") + plus("p", "input: 'a' input: ''"), "is not of the form");
}

TEST(GraphDefImport, ALoopClosesThroughNextIterationOnly) {
  const std::string attrs = "attr { key: 'T' value { type: DT_FLOAT } }";
  const std::string text = in_node("x") + "node { name: 'm' op: 'Merge' input: 'x' input: 'n' " + attrs +
                           " attr { key: 'N' value { i: 2 } } }" + plus("p", "input: 'm' input: 'x'") +
                           "node { name: 'n' op: 'NextIteration' input: 'p' " + attrs + " }";
  Graph g(loop_ops());
  graph_from_bytes(g, text, FileFormat::kText);
  EXPECT_EQ(g.node("m").input(1), g.output("n:0"));
  EXPECT_TRUE(verify(g).empty());
  const std::string bytes = graph_to_bytes(g);
  Graph back(loop_ops());
  graph_from_bytes(back, bytes);
  EXPECT_EQ(graph_to_bytes(back), bytes);
}

TEST(GraphDefImport, FileOrderIsKeptWhereItCanBe) {
  Graph g(toy_ops());
  graph_from_bytes(g, plus("p", "input: 'a' input: 'b'") + in_node("b") + in_node("a") + in_node("z"),
                   FileFormat::kText);
  std::string order;
  for (const Node* n : g.nodes()) order += n->name();
  EXPECT_EQ(order, "bapz");
}

// Case D09.
TEST(GraphDefImport, NamesFollowTheRule) {
  for (const char* name : {"out:0", "a b", "^c", "/x", "_x", ""})
    EXPECT_FALSE(import_error(in_node(name)).empty()) << name;
  EXPECT_NE(import_error(in_node("a b")).find("'a b' is not a valid node name"), std::string::npos);
  EXPECT_EQ(import_error(in_node(std::string(300, 'n')) + in_node("Same") + in_node("same")), "");
}

TEST(GraphDefImport, UnknownOpsAreAllListedWithTheirNodes) {
  Code code{};
  const std::string e = import_error(
      "node { name: 'n' op: 'Zork' } node { name: 'k' op: 'Quux' } node { name: 'k2' op: 'Quux' }", &code);
  EXPECT_EQ(code, Code::kNotFound);
  EXPECT_NE(e.find("Op type not registered 'Zork' (node 'n'), 'Quux' (node 'k')"), std::string::npos) << e;
}

TEST(GraphDefImport, AttrsMustMatchTheOp) {
  EXPECT_NE(import_error("node { name: 'x' op: 'In' }").find("NodeDef missing attr 'dtype' from Op<name=In>"),
            std::string::npos);
  const std::string odd =
      "node { name: 'x' op: 'In' attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'odd' "
      "value { b: VALUE } } } versions { producer: PRODUCER }";
  auto with = [&](const char* value, const char* producer) {
    std::string t = odd;
    t.replace(t.find("VALUE"), 5, value);
    t.replace(t.find("PRODUCER"), 8, producer);
    return import_error(t);
  };
  EXPECT_NE(with("false", "134").find("NodeDef mentions attr 'odd' not in Op<name=In>"), std::string::npos);
  EXPECT_EQ(with("false", "1500"), "") << "a newer program's attr at its default says nothing";
  EXPECT_NE(with("true", "1500").find("mentions attr 'odd'"), std::string::npos);
  EXPECT_NE(import_error("node { name: 'x' op: 'In' attr { key: 'dtype' value { i: 1 } } }").find("'x'"),
            std::string::npos);
  EXPECT_NE(import_error(in_node("x", "DT_DOUBLE") + plus("p", "input: 'x' input: 'x'", "DT_DOUBLE"))
                .find("allowed"),
            std::string::npos);
}

TEST(GraphDefImport, VersionsAreChecked) {
  EXPECT_NE(import_error("versions { producer: 3000 min_consumer: 2000 }").find("min consumer version 2000"),
            std::string::npos);
  EXPECT_NE(
      import_error("versions { producer: 200 bad_consumers: 134 }").find("disallows consumer version 134"),
      std::string::npos);
}

TEST(GraphDefImport, PrefixAndInputMap) {
  Graph g(toy_ops());
  const Output mine = in(g, {3}, "mine");
  const std::string text =
      in_node("x") + plus("p", "input: 'x' input: 'x:0' input: '^x'") +
      "node { name: 'q' op: 'Nothing' attr { key: '_class' value { list { s: 'loc:@p' } } } }";
  graph_from_bytes(g, text, FileFormat::kText, {.prefix = "imp", .input_map = {{"x:0", mine}}});
  const Node& p = g.node("imp/p");
  EXPECT_EQ(p.input(0), mine);
  EXPECT_EQ(p.input(1), mine);
  EXPECT_EQ(p.control_inputs()[0]->name(), "imp/x");
  EXPECT_EQ(g.node("imp/q").attr<std::vector<std::string>>("_class")[0], "loc:@imp/p");
  graph_from_bytes(g, text, FileFormat::kText, {.prefix = "imp"});
  EXPECT_NE(g.find("imp_1/p"), nullptr);
  EXPECT_THROW(graph_from_bytes(g, text, FileFormat::kText, {.input_map = {{"none:0", mine}}}), Error);
  EXPECT_TRUE(verify(g).empty());
  graph_from_bytes(g, in_node("x"), FileFormat::kText);
  try {
    graph_from_bytes(g, in_node("y") + in_node("x"), FileFormat::kText);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("Node name 'x' already exists in the Graph"), std::string::npos);
  }
  EXPECT_EQ(g.find("y"), nullptr) << "a refused import leaves nothing behind";
}

TEST(GraphDefImport, DamagedBytesGiveOneClearError) {
  Graph g(toy_ops());
  build_all_kinds(g);
  const std::string bytes = graph_to_bytes(g);
  for (size_t cut : {size_t{1}, bytes.size() / 2, bytes.size() - 1}) {
    Graph back(toy_ops());
    EXPECT_THROW(graph_from_bytes(back, bytes.substr(0, cut)), Error) << cut;
  }
  // Any single flipped byte either still reads or throws Error; nothing else.
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string bad = bytes;
    bad[i] = static_cast<char>(bad[i] ^ 0x55);
    Graph back(toy_ops());
    try {
      graph_from_bytes(back, bad);
    } catch (const Error&) {
    }
  }
  Graph back(toy_ops());
  try {
    graph_from_bytes(back, bytes, FileFormat::kText);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kDataLoss);
    EXPECT_NE(e.message().find("binary, not protobuf text"), std::string::npos);
  }
  try {
    graph_from_bytes(back, "node {\n  name: 'x'\n  oops: 1\n}\n");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("line 3"), std::string::npos) << e.message();
  }
}

TEST(GraphDefImport, UnknownTextFieldsAreMistakesUnlessANewerProgramWroteThem) {
  const std::string text =
      "node { name: 'n' op: 'Nothing' experimental_type { type_id: 3 } } versions { producer: ";
  EXPECT_NE(import_error(text + "134 }").find("no field named \"experimental_type\""), std::string::npos);
  EXPECT_EQ(import_error(text + "2000 }"), "");
}

TEST(GraphDefImport, DeepNestingIsRefused) {
  std::string text = "node { name: 'x' op: 'In' attr { key: 'f' value { ";
  const int depth = 20000;
  for (int i = 0; i < depth; ++i) text += "func { attr { key: 'f' value { ";
  for (int i = 0; i < depth; ++i) text += "} } }";
  EXPECT_FALSE(import_error(text + "} } }").empty());
  // The same in binary: value { func { attr { value { … } } } } built from the inside out.
  auto wrap = [](char tag, const std::string& inner) {
    std::string s(1, tag);
    size_t n = inner.size();
    for (; n >= 0x80; n >>= 7) s += static_cast<char>(n | 0x80);
    s += static_cast<char>(n);
    return s + inner;
  };
  std::string value;
  for (int i = 0; i < 2000; ++i) value = wrap(0x52, wrap(0x12, wrap(0x12, value)));
  Graph g(toy_ops());
  EXPECT_THROW(graph_from_bytes(g, wrap(0x0a, wrap(0x2a, wrap(0x12, value))), FileFormat::kBinary), Error);
}

TEST(GraphFiles, MissingFileDirectoryAndEmptyFileNameThePath) {
  Graph g(toy_ops());
  auto error = [&](const std::string& path) {
    try {
      read_graph_file(g, path);
    } catch (const Error& e) {
      EXPECT_NE(e.message().find(path), std::string::npos);
      return e.code();
    }
    return Code::kOk;
  };
  EXPECT_EQ(error("/nowhere/g.pb"), Code::kNotFound);
  EXPECT_EQ(error("/"), Code::kFailedPrecondition);
  write_file_atomically(temporary("empty.pb"), "");
  EXPECT_EQ(error(temporary("empty.pb")), Code::kDataLoss);
  write_file_atomically(temporary("saved_model.pb"), std::string("\x08\x01\x12\x00", 4));
  EXPECT_EQ(error(temporary("saved_model.pb")), Code::kUnimplemented);
  EXPECT_THROW(write_graph_file(g, temporary("no/such/g.pb")), Error);
  EXPECT_FALSE(file_exists(temporary("no")));
}

TEST(MetaGraph, CollectionsAndSaverComeBack) {
  Graph g(toy_ops());
  Node& v = g.add({.op = "Var", .name = "v", .attrs = {{"dtype", DType::kFloat}, {"shape", Shape{2}}}});
  Node& init = g.add({.op = "Const",
                      .name = "v/init",
                      .attrs = {{"dtype", DType::kFloat}, {"value", Literal::vector<float>({1, 2})}}});
  Node& assign = g.add({.op = "Set", .name = "v/Assign", .inputs = {v.output(), init.output()}});
  auto info = std::make_shared<VariableInfo>();
  info->node = &v, info->initializer = &assign, info->initial_value_node = &init,
  info->snapshot_node = &assign;
  info->is_resource = false;
  info->slice = std::make_shared<const SaveSlice>(
      SaveSlice{.full_name = "v", .full_shape = {4}, .offset = {2}, .shape = {2}});
  Collections& c = g.collections();
  c.add(keys::kGlobalVariables, info);
  c.add(keys::kTrainableVariables, info);
  c.add(keys::kLosses, GraphElement{&init, 0});
  c.add(keys::kTrainOp, GraphElement{&assign, -1});
  c.add("numbers", int64_t{3});
  c.add("numbers", int64_t{4});
  c.add("rates", 0.5f);
  c.add("words", std::string("hello"));
  c.add(keys::kQueueRunners, OpaqueItem{.bytes = "\x0a\x01q"});
  const MetaGraphInfo meta{.tags = {"train"},
                           .tensorflow_version = "1.15.5",
                           .saver = SaverInfo{.filename_tensor = "save/Const:0",
                                              .save_tensor = "save/id:0",
                                              .restore_op = "save/restore_all",
                                              .max_to_keep = 3}};
  for (const FileFormat format : {FileFormat::kBinary, FileFormat::kText}) {
    Graph back(toy_ops());
    const std::string bytes = meta_graph_to_bytes(g, meta, format);
    const MetaGraphInfo read = meta_graph_from_bytes(back, bytes, FileFormat::kAuto, {.prefix = "m"});
    const Collections& d = back.collections();
    EXPECT_EQ(d.keys(), c.keys());
    const auto vars = d.variables(keys::kGlobalVariables);
    ASSERT_EQ(vars.size(), 1u);
    EXPECT_EQ(vars[0], d.variables(keys::kTrainableVariables).at(0)) << "one variable, two collections";
    EXPECT_EQ(vars[0]->node->name(), "m/v");
    EXPECT_EQ(vars[0]->initializer->name(), "m/v/Assign");
    EXPECT_EQ(vars[0]->slice->offset, Dims{2});
    EXPECT_FALSE(vars[0]->is_resource);
    EXPECT_EQ(d.elements(keys::kLosses)[0], (GraphElement{back.find("m/v/init"), 0}));
    EXPECT_EQ(d.elements(keys::kTrainOp)[0].index, -1);
    EXPECT_EQ(d.get("numbers"), c.get("numbers"));
    EXPECT_EQ(d.get("rates"), c.get("rates"));
    EXPECT_EQ(d.get("words"), c.get("words"));
    EXPECT_EQ(d.get(keys::kQueueRunners), c.get(keys::kQueueRunners));
    ASSERT_TRUE(read.saver);
    EXPECT_EQ(read.saver->restore_op, "m/save/restore_all");
    EXPECT_EQ(read.tags, meta.tags);
    Graph plain(toy_ops());
    const MetaGraphInfo again = meta_graph_from_bytes(plain, bytes);
    EXPECT_EQ(meta_graph_to_bytes(plain, again, format), bytes);
  }
  write_meta_graph_file(g, meta, temporary("m.meta"));
  Graph back(toy_ops());
  EXPECT_EQ(read_graph_file(back, temporary("m.meta")).tensorflow_version, "1.15.5");
  EXPECT_FALSE(back.collections().empty("words"));
}

TEST(MetaGraph, ACollectionThatNamesNothingIsRefused) {
  Graph g(toy_ops());
  try {
    meta_graph_from_bytes(
        g, "graph_def { } collection_def { key: 'losses' value { node_list { value: 'w:0' } } }");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("collection 'losses': names 'w:0'"), std::string::npos) << e.message();
  }
}

TEST(Verify, FindsWhatDoesNotHold) {
  Graph g(toy_ops());
  const Output x = in(g, {2});
  Node& p = g.add({.op = "Plus", .inputs = {x, x}});
  EXPECT_TRUE(verify(g).empty());
  g.set_attr(p, "_class", std::vector<std::string>{"loc:@gone"});
  g.collections().add("k", GraphElement{&p, 4});
  Graph other(toy_ops());
  g.collections().add("k", GraphElement{in(other, {1}).node, 0});
  const auto found = verify(g);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].node, "Plus");
  EXPECT_NE(found[0].rule.find("unknown node 'gone'"), std::string::npos);
  EXPECT_THROW(require_valid(g), Error);
}

}  // namespace
}  // namespace sluice::graph
