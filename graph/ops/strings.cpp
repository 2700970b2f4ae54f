// Text: conversion, joining, splitting, patterns. None has a gradient.

#include "graph/ops/register.h"
#include "graph/ops/shapes.h"

namespace sluice::graph::ops {
namespace {

constexpr uint32_t kText = kHostOnly | kNotDifferentiable;

// Input 0's shape; the other inputs are scalars.
void text_shape(InferContext& c) {
  for (int i = 1; i < c.num_inputs(); ++i) require_scalar(c, i);
  c.set_output(0, c.input(0));
}

void all_scalars(InferContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) require_scalar(c, i);
  scalar_output(c);
}

// Scalars join with every element of the others.
void string_join_shape(InferContext& c) {
  Shape out = Shape::scalar();
  for (int i = 0; i < c.num_inputs(); ++i) {
    const Shape& s = c.input(i);
    if (!s.known_rank()) {
      out = Shape();
      break;
    }
    if (s.rank() > 0) out = out.rank() == 0 ? s : c.merge(out, s);
  }
  c.set_output(0, out);
}

// Coordinates [n, 2], texts [n], shape [2].
void split_shape(InferContext& c) {
  c.with_rank(0, 1);
  require_scalar(c, 1);
  c.set_output(0, Shape{kUnknownDim, 2});
  c.set_output(1, Shape::of_rank(1));
  c.set_output(2, Shape{2});
}

void substr_shape(InferContext& c) {
  c.merge(c.input(1), c.input(2));
  c.set_output(0, broadcast(c, c.input(0), c.input(1)));
}

// No axis given: joins to a scalar only when the axes are none for a scalar; as TensorFlow, an empty list
// joins nothing.
void reduce_join_shape(InferContext& c) {
  const Shape& x = c.input(0);
  const auto axes = ints(c, 1);
  if (!x.known_rank() || !axes || !axes->fully_known()) return;
  std::vector<bool> gone(static_cast<size_t>(x.rank()));
  for (const auto& a : axes->values) {
    const auto at = static_cast<size_t>(c.axis(*a, x.rank()));
    require(c, !gone[at], "Duplicate reduction dimension ", at);
    gone[at] = true;
  }
  Dims dims;
  for (int d = 0; d < x.rank(); ++d) {
    if (!gone[static_cast<size_t>(d)])
      dims.push_back(x.dim(d));
    else if (c.attr<bool>("keep_dims"))
      dims.push_back(1);
  }
  c.set_output(0, Shape(std::move(dims)));
}

void add_patterns(OpRegistry& r) {
  r.add({.name = "RegexFullMatch",
         .inputs = {"input: string", "pattern: string"},
         .outputs = {"output: bool"},
         .doc = "Whether each string matches the pattern as a whole.",
         .traits = kText,
         .infer = text_shape});
  r.add({.name = "RegexReplace",
         .inputs = {"input: string", "pattern: string", "rewrite: string"},
         .outputs = {"output: string"},
         .attrs = {"replace_global: bool = true"},
         .doc = "Each string with its matches (or the first) rewritten; \\1 to \\9 in the rewrite are the "
                "groups, \\0 the match.",
         .traits = kText,
         .infer = text_shape});
  r.add({.name = "StaticRegexFullMatch",
         .inputs = {"input: string"},
         .outputs = {"output: bool"},
         .attrs = {"pattern: string"},
         .doc = "Whether each string matches the pattern as a whole.",
         .traits = kText,
         .infer = same_shape});
  r.add({.name = "StaticRegexReplace",
         .inputs = {"input: string"},
         .outputs = {"output: string"},
         .attrs = {"pattern: string", "rewrite: string", "replace_global: bool = true"},
         .doc = "RegexReplace with pattern and rewrite fixed.",
         .traits = kText,
         .infer = same_shape});
}

}  // namespace

void register_strings(OpRegistry& r) {
  add_patterns(r);
  r.add({.name = "AsString",
         .inputs = {"input: T"},
         .outputs = {"output: string"},
         .attrs = {"T: {int8, int16, int32, int64, float, double, bool, complex64, complex128}",
                   "precision: int = -1", "scientific: bool = false", "shortest: bool = false",
                   "width: int = -1", "fill: string = ''"},
         .doc = "Numbers as printf writes them.",
         .traits = kText,
         .infer = same_shape});
  r.add({.name = "ReduceJoin",
         .inputs = {"inputs: string", "reduction_indices: int32"},
         .outputs = {"output: string"},
         .attrs = {"keep_dims: bool = false", "separator: string = ''"},
         .doc = "Joins strings along axes, the first given axis outermost.",
         .traits = kText,
         .infer = reduce_join_shape});
  r.add({.name = "ShardedFilename",
         .inputs = {"basename: string", "shard: int32", "num_shards: int32"},
         .outputs = {"filename: string"},
         .doc = "basename-SSSSS-of-NNNNN.",
         .traits = kText,
         .infer = all_scalars});
  r.add({.name = "ShardedFilespec",
         .inputs = {"basename: string", "num_shards: int32"},
         .outputs = {"filename: string"},
         .doc = "The pattern of all shards: basename-?\?\?\?\?-of-NNNNN.",
         .traits = kText,
         .infer = all_scalars});
  r.add({.name = "StringJoin",
         .inputs = {"inputs: N * string"},
         .outputs = {"output: string"},
         .attrs = {"N: int >= 1", "separator: string = ''"},
         .doc = "Joins strings element by element.",
         .traits = kText,
         .infer = string_join_shape});
  r.add({.name = "StringLength",
         .inputs = {"input: string"},
         .outputs = {"output: int32"},
         .attrs = {"unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'"},
         .doc = "Number of bytes (or UTF-8 characters) of each string.",
         .traits = kText,
         .infer = same_shape});
  for (const char* name : {"StringLower", "StringUpper"})
    r.add({.name = name,
           .inputs = {"input: string"},
           .outputs = {"output: string"},
           .attrs = {"encoding: {'', 'utf-8'} = ''"},
           .doc = "Each string in the other case; the ASCII letters.",
           .traits = kText,
           .infer = same_shape});
  r.add({.name = "StringSplit",
         .inputs = {"input: string", "delimiter: string"},
         .outputs = {"indices: int64", "values: string", "shape: int64"},
         .attrs = {"skip_empty: bool = true"},
         .doc = "Splits each string at any byte of the delimiter (none: into bytes): coordinates, parts and "
                "shape of a sparse tensor.",
         .traits = kText | kDynamicShape,
         .infer = split_shape});
  r.add({.name = "StringSplitV2",
         .inputs = {"input: string", "sep: string"},
         .outputs = {"indices: int64", "values: string", "shape: int64"},
         .attrs = {"maxsplit: int = -1"},
         .doc = "Splits each string at the separator (none: at runs of white space), as Python's split: "
                "coordinates, parts and shape of a sparse tensor.",
         .traits = kText | kDynamicShape,
         .infer = split_shape});
  r.add({.name = "StringStrip",
         .inputs = {"input: string"},
         .outputs = {"output: string"},
         .doc = "Each string without white space at its ends.",
         .traits = kText,
         .infer = same_shape});
  r.add({.name = "StringToNumber",
         .inputs = {"string_tensor: string"},
         .outputs = {"output: out_type"},
         .attrs = {"out_type: {float, double, int32, int64} = float"},
         .doc = "The number that each string spells.",
         .traits = kText,
         .infer = same_shape,
         .later_attrs = {}});
  r.add({.name = "Substr",
         .inputs = {"input: string", "pos: T", "len: T"},
         .outputs = {"output: string"},
         .attrs = {"T: {int32, int64}", "unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'"},
         .doc = "len bytes of each string from pos on (from the end where negative).",
         .traits = kText,
         .infer = substr_shape});
}

}  // namespace sluice::graph::ops
