// The random ops. A node's stream lives in the session; a run takes a copy of its counter and moves the
// stream on by 256 blocks an element, whatever it uses, so values depend neither on threads nor on plans. A
// plan in double (reference64) draws what the op's own type would and widens it.

#include <cmath>
#include <mutex>
#include <random>

#include "kernels/reference/common.h"
#include "kernels/reference/philox.h"
#include "kernels/reference/register.h"

namespace sluice::kernels {
namespace {

struct Source {
  std::shared_ptr<runtime::RandomStream> stream;
  uint64_t seed, seed2;

  // The generator for a run of `elements` outputs.
  Philox reserve(uint64_t blocks) const {
    std::lock_guard lock(stream->mutex);
    if (!stream->seeded) {
      stream->seeded = true;
      stream->key = seed;
      stream->key2 = seed2;
      if (seed == 0 && seed2 == 0) {
        std::random_device device;
        stream->key = (uint64_t{device()} << 32) | device();
        stream->key2 = (uint64_t{device()} << 32) | device();
      }
      stream->counter[0] = 0;
      stream->counter[1] = stream->key2;
    }
    const Philox now(stream->key, stream->counter[0], stream->counter[1]);
    Philox later = now;
    later.skip(blocks);
    stream->counter[0] = later.low();
    stream->counter[1] = later.high();
    return now;
  }
};

Source source_of(const KernelSpec& spec) {
  Source s{nullptr, static_cast<uint64_t>(spec.attr_or<int64_t>("seed", 0)),
           static_cast<uint64_t>(spec.attr_or<int64_t>("seed2", 0))};
  // Without a session (a plan is only being looked at) the stream is the kernel's own.
  s.stream = spec.resources && spec.node ? spec.resources->stream(spec.node->name())
                                         : std::make_shared<runtime::RandomStream>();
  return s;
}

constexpr uint64_t kBlocksPerElement = 256;

int64_t open_output(const KernelRun& r) {
  if (!r.out_is_array(0)) return out_count(r, 0);
  Dims dims;
  for (int64_t k = 0; k < in_count(r, 0); ++k) dims.push_back(int_at(r, 0, k));
  const int64_t n = graph::num_elements(dims);
  result(r, 0, std::move(dims));
  return n;
}

template <class R>
R* out_values(const KernelRun& r) {
  return static_cast<R*>(r.out_is_array(0) ? r.out_array(0).data() : r.out_data(0));
}

/// Fills groups of values; `group` draws them: void(Philox at the group's start, Drawn* to). Drawn is what
/// the op's type would hold.
template <class Drawn, int kSize, uint64_t kStride, class Group>
void fill_groups(KernelRun& r, const Source& source, Group group) {
  const int64_t n = open_output(r);
  const Philox start = source.reserve(static_cast<uint64_t>(n) * kBlocksPerElement);
  for_common(r.out_dtype(0), [&]<class R>() {
    R* to = out_values<R>(r);
    r.queue().parallel_for((n + kSize - 1) / kSize, 1024, [&](int64_t begin, int64_t end) {
      Philox g = start;
      g.skip(static_cast<uint64_t>(begin) * kStride);
      Drawn values[kSize];
      for (int64_t k = begin; k < end; ++k) {
        Philox own = g;
        group(own, values);
        g.skip(kStride);
        for (int64_t j = k * kSize; j < std::min(n, (k + 1) * kSize); ++j)
          to[j] = static_cast<R>(values[j - k * kSize]);
      }
    });
  });
}

bool draws_double(const KernelSpec& spec) {
  return spec.attr_or<DType>("dtype", DType::kFloat) == DType::kDouble;
}

void require_float(const KernelSpec& spec) {
  const DType t = spec.attr_or<DType>("dtype", DType::kFloat);
  if (t != DType::kFloat && t != DType::kDouble) unsupported_dtype(t);
}

BoundFn uniform(const KernelSpec& spec) {
  require_float(spec);
  const Source s = source_of(spec);
  if (draws_double(spec))
    return [s](KernelRun& r) {
      fill_groups<double, 2, 1>(r, s, [](Philox& g, double* v) {
        const Philox::Block b = g.next();
        v[0] = uniform_double(b[0], b[1]);
        v[1] = uniform_double(b[2], b[3]);
      });
    };
  return [s](KernelRun& r) {
    fill_groups<float, 4, 1>(r, s, [](Philox& g, float* v) {
      const Philox::Block b = g.next();
      for (size_t k = 0; k < 4; ++k) v[k] = uniform_float(b[k]);
    });
  };
}

BoundFn normal(const KernelSpec& spec) {
  require_float(spec);
  const Source s = source_of(spec);
  if (draws_double(spec))
    return [s](KernelRun& r) {
      fill_groups<double, 2, 1>(r, s, [](Philox& g, double* v) { normal_double(g.next(), v[0], v[1]); });
    };
  return [s](KernelRun& r) {
    fill_groups<float, 4, 1>(r, s, [](Philox& g, float* v) {
      const Philox::Block b = g.next();
      normal_float(b[0], b[1], v[0], v[1]);
      normal_float(b[2], b[3], v[2], v[3]);
    });
  };
}

// Normal values beyond two deviations are drawn again; each group has 256 blocks per 4 words of its own.
BoundFn truncated_normal(const KernelSpec& spec) {
  require_float(spec);
  const Source s = source_of(spec);
  if (draws_double(spec))
    return [s](KernelRun& r) {
      fill_groups<double, 2, 128>(r, s, [](Philox& g, double* v) {
        for (int filled = 0; filled < 2;) {
          double d[2];
          normal_double(g.next(), d[0], d[1]);
          for (int k = 0; k < 2 && filled < 2; ++k)
            if (std::fabs(d[k]) < 2.0) v[filled++] = d[k];
        }
      });
    };
  return [s](KernelRun& r) {
    fill_groups<float, 4, 256>(r, s, [](Philox& g, float* v) {
      for (int filled = 0; filled < 4;) {
        const Philox::Block b = g.next();
        for (size_t half = 0; half < 2 && filled < 4; ++half) {
          float f[2];
          normal_float(b[2 * half], b[2 * half + 1], f[0], f[1]);
          for (int k = 0; k < 2 && filled < 4; ++k)
            if (std::fabs(f[k]) < 2.0f) v[filled++] = f[k];
        }
      }
    });
  };
}

// (shape, minval, maxval)
BoundFn uniform_int(const KernelSpec& spec) {
  const Source s = source_of(spec);
  return [s](KernelRun& r) {
    const int64_t lo = scalar_int(r, 1), hi = scalar_int(r, 2);
    SLUICE_REQUIRE(lo < hi, Code::kInvalidArgument, "Need minval < maxval, got ", lo, " >= ", hi);
    const uint64_t span = static_cast<uint64_t>(hi) - static_cast<uint64_t>(lo);
    if (graph::base_dtype(r.out_dtype(0)) == DType::kInt32) {
      fill_groups<int32_t, 4, 1>(r, s, [&](Philox& g, int32_t* v) {
        const Philox::Block b = g.next();
        for (size_t k = 0; k < 4; ++k)
          v[k] = static_cast<int32_t>(static_cast<uint32_t>(lo) + b[k] % static_cast<uint32_t>(span));
      });
    } else {
      fill_groups<int64_t, 2, 1>(r, s, [&](Philox& g, int64_t* v) {
        const Philox::Block b = g.next();
        for (size_t k = 0; k < 2; ++k) {
          const uint64_t word = b[2 * k] | (uint64_t{b[2 * k + 1]} << 32);
          v[k] = static_cast<int64_t>(static_cast<uint64_t>(lo) + word % span);
        }
      });
    }
  };
}

// Rows in random order: every row swaps with one at or after it.
BoundFn shuffle(const KernelSpec& spec) {
  const Source s = source_of(spec);
  return [s](KernelRun& r) {
    const int64_t n = r.in_dims(0).empty() ? 1 : r.in_dims(0)[0];
    for_moved(r.out_dtype(0), [&]<class T>() {
      T* to = moved_out<T>(r, 0);
      const T* from = moved_in<T>(r, 0);
      std::copy(from, from + in_count(r, 0), to);
      if (n <= 1) return;
      const int64_t inner = in_count(r, 0) / n;
      Philox g = s.reserve(static_cast<uint64_t>((n - 1 + 3) / 4));
      Philox::Block block{};
      size_t used = 4;
      for (int64_t i = 0; i + 1 < n; ++i) {
        if (used == 4) {
          block = g.next();
          used = 0;
        }
        const int64_t j = i + static_cast<int64_t>(block[used++] % static_cast<uint32_t>(n - i));
        if (j != i) std::swap_ranges(to + i * inner, to + (i + 1) * inner, to + j * inner);
      }
    });
  };
}

}  // namespace

void register_random(KernelRegistry& r) {
  add_bound(r, "RandomUniform", uniform);
  add_bound(r, "RandomStandardNormal", normal);
  add_bound(r, "TruncatedNormal", truncated_normal);
  add_bound(r, "RandomUniformInt", uniform_int);
  add_bound(r, "RandomShuffle", shuffle);
}

}  // namespace sluice::kernels
