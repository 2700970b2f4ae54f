#include "runtime/region.h"

#include "graph/support/cat.h"
#include "graph/support/hash.h"

namespace sluice::runtime {
namespace {

const char* name(RegionExtent e) {
  switch (e) {
    case RegionExtent::kWhole:
      return "whole";
    case RegionExtent::kCol:
      return "col";
    case RegionExtent::kRow:
      return "row";
    case RegionExtent::kScalar:
      return "scalar";
  }
  return "?";
}

const char* name(RegionReduce r) {
  switch (r) {
    case RegionReduce::kNone:
      return "";
    case RegionReduce::kSum:
      return "Sum";
    case RegionReduce::kMax:
      return "Max";
    case RegionReduce::kMin:
      return "Min";
    case RegionReduce::kProd:
      return "Prod";
  }
  return "?";
}

}  // namespace

std::string RegionProgram::str() const {
  std::string s = cat(rows, "x", cols, '\n');
  int reg = 0;
  for (const RegionInput& in : inputs) s += cat("r", reg++, " = in ", name(in.extent), ' ', in.dtype, '\n');
  for (const RegionInst& i : insts) {
    s += cat("r", reg++, " = ", i.op);
    if (i.op == "_Imm") s += cat(' ', i.imm);
    for (int a : i.args) s += cat(" r", a);
    if (i.alpha != 0) s += cat(" alpha=", i.alpha);
    s += cat(" : ", i.dtype, '\n');
  }
  for (const RegionOutput& o : outputs) {
    s += cat("out ", name(o.extent), ' ', o.dtype, " = ", name(o.reduce),
             o.reduce == RegionReduce::kNone ? "r" : " r", o.reg);
    if (o.scale != 1.0) s += cat(" * ", o.scale);
    s += '\n';
  }
  return s;
}

uint64_t RegionProgram::hash() const { return hash_string(str()); }

}  // namespace sluice::runtime
