// The checklist of an op: doc, shape rule, kernel, gradient or an explicit "none"; tests/ops asks for its row
// in the table. What is missing is listed by name; exceptions stand in the manifest below, each with its
// reason.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>

#include "graph/op.h"
#include "runtime/kernel.h"

namespace sluice {
namespace {

using graph::OpDef;
using graph::Trait;

/// Ops without a gradient that are not marked kNotDifferentiable, and why.
const std::map<std::string, std::string>& no_gradient_yet() {
  static const std::map<std::string, std::string> m = {
#include "tests/house/no_gradient.inc"
  };
  return m;
}

// Control ops are defined so that graph files load and print.
bool is_definition_only(const OpDef& d) { return d.has(graph::kControlFlow); }

template <class Pred>
std::string list_where(Pred&& missing) {
  std::string s;
  for (const std::string& name : graph::standard_ops().names())
    if (missing(graph::standard_ops().get(name))) s += (s.empty() ? "" : ", ") + name;
  return s;
}

TEST(Completeness, EveryOpHasADocSentence) {
  EXPECT_EQ(list_where([](const OpDef& d) { return d.doc.empty() || !d.doc.ends_with('.'); }), "");
}

TEST(Completeness, EveryOpHasAShapeRule) {
  EXPECT_EQ(list_where([](const OpDef& d) { return !d.infer; }), "");
}

TEST(Completeness, EveryOpHasAReferenceKernelOrIsThePlansOwnBusiness) {
  EXPECT_EQ(list_where([](const OpDef& d) {
              if (is_definition_only(d) || d.has(graph::kViewOf0) || d.has(graph::kSource) ||
                  d.has(graph::kVariable) || d.output_args.empty())
                return false;
              for (const runtime::KernelDef* k : runtime::standard_kernels().candidates(d.name))
                if (k->reference) return false;
              return d.name != "Const";
            }),
            "");
}

TEST(Completeness, EveryOpHasAGradientOrSaysThatItHasNone) {
  EXPECT_EQ(list_where([](const OpDef& d) {
              return !d.grad && !d.has(graph::kNotDifferentiable) && !d.input_args.empty() &&
                     !is_definition_only(d) && !d.has(graph::kWritesVariable) &&
                     !no_gradient_yet().contains(d.name);
            }),
            "");
}

TEST(Completeness, TheManifestNamesOnlyOpsThatExist) {
  for (const auto& [name, reason] : no_gradient_yet()) {
    EXPECT_NE(graph::standard_ops().find(name), nullptr) << name;
    EXPECT_FALSE(reason.empty()) << name;
  }
}

// With SLUICE_WRITE_OP_TABLE=FILE the coverage table of docs/ops.md is written there; otherwise it must be up
// to date.
TEST(Completeness, TheOpTableInTheDocsIsUpToDate) {
  std::string table =
      "# Ops\n\nMade by `SLUICE_WRITE_OP_TABLE=docs/ops.md house_tests`; a test keeps it true.\n\n"
      "| op | gradient | kernels |\n| --- | --- | --- |\n";
  for (const std::string& name : graph::standard_ops().names()) {
    const OpDef& d = graph::standard_ops().get(name);
    std::string kernels;
    for (const runtime::KernelDef* k : runtime::standard_kernels().candidates(name))
      if (k->name.find("onednn") == std::string::npos) kernels += (kernels.empty() ? "" : ", ") + k->name;
    if (kernels.empty()) kernels = is_definition_only(d) ? "none yet" : "plan";
    table += "| " + name + " | " +
             (d.grad                             ? "yes"
              : d.has(graph::kNotDifferentiable) ? "constant"
                                                 : "–") +
             " | " + kernels + " |\n";
  }
  if (const char* path = std::getenv("SLUICE_WRITE_OP_TABLE")) {
    std::ofstream(path) << table;
    return;
  }
  std::ifstream in(SLUICE_SOURCE_DIR "/docs/ops.md");
  const std::string have((std::istreambuf_iterator<char>(in)), {});
  EXPECT_TRUE(have == table) << "docs/ops.md is out of date: run with SLUICE_WRITE_OP_TABLE=docs/ops.md";
}

}  // namespace
}  // namespace sluice
