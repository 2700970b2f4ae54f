#pragma once
// Runs one kernel of the registry on its own: no graph, no plan. Values go in and come out row-major; the
// kernel's layouts are obeyed in between.

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "runtime/array.h"
#include "runtime/kernel.h"

namespace sluice::test {

using graph::Dims;
using graph::DType;
using runtime::Array;

struct KernelCase {
  std::string op;
  graph::AttrMap attrs;
  std::vector<Array> inputs;
  std::vector<runtime::ValueSpec> outputs;
  std::shared_ptr<const runtime::RegionProgram> region;
  bool constants = true;  // inputs are known to the kernel's factory
  bool forward_only = false;
};

inline std::vector<Array> run_kernel(const KernelCase& c, const std::string& candidate, int threads = 2) {
  runtime::KernelSpec spec;
  spec.op = c.op;
  spec.attrs = c.attrs;
  spec.outputs = c.outputs;
  spec.region = c.region;
  spec.threads = threads;
  spec.forward_only = c.forward_only;
  for (const Array& a : c.inputs) {
    spec.inputs.push_back({a.dtype(), a.dims(), {}});
    spec.constants.push_back(c.constants ? std::optional(a.to_literal()) : std::nullopt);
    spec.variables.push_back(nullptr);
  }
  std::unique_ptr<runtime::Kernel> kernel;
  runtime::Refusal refusal;
  for (const runtime::KernelDef* def : runtime::standard_kernels().candidates(c.op))
    if (def->name == candidate) kernel = def->make(spec, refusal);
  if (!kernel) {
    ADD_FAILURE() << c.op << " by " << candidate << ": " << refusal.reason;
    return {};
  }
  std::unique_ptr<runtime::WorkQueue> queue =
      threads == 1 ? runtime::make_serial_queue() : runtime::make_default_queue(threads);
  std::vector<runtime::ValueSpec> in_specs = spec.inputs, out_specs = spec.outputs;
  std::vector<Array> in_bytes, out_bytes, results;
  std::vector<runtime::Slot> in(in_specs.size()), out(out_specs.size());
  for (size_t i = 0; i < in_specs.size(); ++i) {
    if (!kernel->input_layouts.empty()) in_specs[i].layout = kernel->input_layouts[i];
    in_bytes.emplace_back(in_specs[i].dtype, in_specs[i].dims);
    runtime::reorder(in_specs[i].dtype, in_specs[i].dims, {}, c.inputs[i].data(), in_specs[i].layout,
                     in_bytes.back().data());
    in[i] = {in_bytes.back().data(), &in_specs[i], &in_bytes.back(), nullptr};
  }
  for (size_t i = 0; i < out_specs.size(); ++i) {
    if (!kernel->output_layouts.empty()) out_specs[i].layout = kernel->output_layouts[i];
    out_bytes.emplace_back(out_specs[i].dtype, out_specs[i].dims);
    if (out_bytes.back().bytes() > 0) memset(out_bytes.back().data(), 0x7f, out_bytes.back().bytes());
  }
  for (size_t i = 0; i < out_specs.size(); ++i)
    out[i] = {out_bytes[i].data(), &out_specs[i], &out_bytes[i], nullptr};
  for (size_t i = 0; i < in_bytes.size(); ++i) in[i].array = &in_bytes[i];
  runtime::Buffer scratch(kernel->scratch_bytes);
  runtime::RunState state;
  runtime::KernelRun run(in.data(), out.data(), static_cast<int>(in.size()), static_cast<int>(out.size()),
                         scratch.data(), *queue, state);
  kernel->run(run);
  for (size_t i = 0; i < out_specs.size(); ++i) {
    Array plain(out_specs[i].dtype, out_specs[i].dims);
    runtime::reorder(out_specs[i].dtype, out_specs[i].dims, out_specs[i].layout, out_bytes[i].data(), {},
                     plain.data());
    results.push_back(plain);
  }
  return results;
}

/// Normal numbers from a fixed seed.
inline Array random_array(Dims dims, uint32_t seed, float scale = 1, float mean = 0) {
  Array a(DType::kFloat, std::move(dims));
  std::mt19937 gen(seed);
  std::normal_distribution<float> normal(mean, scale);
  for (float& v : a.as<float>()) v = normal(gen);
  return a;
}

/// |got − want| ≤ tolerance · (largest |want|), NaN equal to NaN, infinities equal.
inline void expect_close(const Array& got, const Array& want, float tolerance, const std::string& what) {
  ASSERT_EQ(got.dims(), want.dims()) << what;
  float scale = 1e-30f;
  for (float w : want.as<float>())
    if (std::isfinite(w)) scale = std::max(scale, std::fabs(w));
  int64_t bad = 0;
  for (size_t i = 0; i < got.as<float>().size() && bad < 5; ++i) {
    float g = got.as<float>()[i], w = want.as<float>()[i];
    bool same = (std::isnan(g) && std::isnan(w)) || g == w || std::fabs(g - w) <= tolerance * scale;
    if (same) continue;
    ADD_FAILURE() << what << " at " << i << ": " << g << ", want " << w << " (scale " << scale << ")";
    ++bad;
  }
}

inline bool same_bits(const Array& a, const Array& b) {
  return a.dims() == b.dims() && (a.bytes() == 0 || memcmp(a.data(), b.data(), a.bytes()) == 0);
}

}  // namespace sluice::test
