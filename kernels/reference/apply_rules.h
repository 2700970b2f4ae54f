#pragma once
// The optimizers' formulas, one element at a time (graph-and-training §4.3), in the variable's type and in
// TensorFlow's order of operations. `bind(h, flag)` takes the hyper-parameters in the op's input order and
// gives the update: void(T* const* v, int64_t i, T g) with v[0] the variable and v[1…] its slots.

#include <cmath>
#include <cstdint>

namespace sluice::kernels::apply_rules {

template <class T>
T sign(T x) {
  return static_cast<T>((x > T(0)) - (x < T(0)));
}

/// h: lr
struct GradientDescent {
  template <class T>
  static auto bind(const T* h, bool) {
    return [lr = h[0]](T* const* v, int64_t i, T g) { v[0][i] -= lr * g; };
  }
};

/// v: w, accum; h: lr, momentum; flag: Nesterov
struct Momentum {
  template <class T>
  static auto bind(const T* h, bool nesterov) {
    return [lr = h[0], mu = h[1], nesterov](T* const* v, int64_t i, T g) {
      T& a = v[1][i];
      a = a * mu + g;
      if (nesterov)
        v[0][i] -= g * lr + a * mu * lr;
      else
        v[0][i] -= lr * a;
    };
  }
};

/// v: w, ms, mom; h: lr, rho, momentum, epsilon
struct RmsProp {
  template <class T>
  static auto bind(const T* h, bool) {
    return [lr = h[0], rho = h[1], mu = h[2], eps = h[3]](T* const* v, int64_t i, T g) {
      T &ms = v[1][i], &mom = v[2][i];
      ms += (g * g - ms) * (T(1) - rho);
      mom = mom * mu + g * lr / std::sqrt(ms + eps);
      v[0][i] -= mom;
    };
  }
};

/// v: w, mg, ms, mom; h: lr, rho, momentum, epsilon
struct CenteredRmsProp {
  template <class T>
  static auto bind(const T* h, bool) {
    return [lr = h[0], rho = h[1], mu = h[2], eps = h[3]](T* const* v, int64_t i, T g) {
      T &mg = v[1][i], &ms = v[2][i], &mom = v[3][i];
      ms += (g * g - ms) * (T(1) - rho);
      mg += (g - mg) * (T(1) - rho);
      mom = mom * mu + g * lr / std::sqrt(ms - mg * mg + eps);
      v[0][i] -= mom;
    };
  }
};

/// v: w, accum; h: lr; flag: accumulate
struct Adagrad {
  template <class T>
  static auto bind(const T* h, bool accumulate) {
    return [lr = h[0], accumulate](T* const* v, int64_t i, T g) {
      T& a = v[1][i];
      if (accumulate) a += g * g;
      v[0][i] -= g * lr / std::sqrt(a);
    };
  }
};

/// v: w, accum; h: lr, epsilon; flag: accumulate
struct AdagradV2 {
  template <class T>
  static auto bind(const T* h, bool accumulate) {
    return [lr = h[0], eps = h[1], accumulate](T* const* v, int64_t i, T g) {
      T& a = v[1][i];
      if (accumulate) a += g * g;
      v[0][i] -= g * lr / (std::sqrt(a) + eps);
    };
  }
};

/// v: w, accum, accum_update; h: lr, rho, epsilon
struct Adadelta {
  template <class T>
  static auto bind(const T* h, bool) {
    return [lr = h[0], rho = h[1], eps = h[2]](T* const* v, int64_t i, T g) {
      T &a = v[1][i], &au = v[2][i];
      a = a * rho + g * g * (T(1) - rho);
      const T u = std::sqrt(au + eps) / std::sqrt(a + eps) * g;
      v[0][i] -= u * lr;
      au = au * rho + u * u * (T(1) - rho);
    };
  }
};

/// v: w, m, v; h: β1ᵗ, β2ᵗ, lr, β1, β2, epsilon; flag: Nesterov
struct Adam {
  template <class T>
  static auto bind(const T* h, bool nesterov) {
    const T alpha = h[2] * std::sqrt(T(1) - h[1]) / (T(1) - h[0]);
    return [alpha, b1 = h[3], b2 = h[4], eps = h[5], nesterov](T* const* v, int64_t i, T g) {
      T &m = v[1][i], &s = v[2][i];
      m += (g - m) * (T(1) - b1);
      s += (g * g - s) * (T(1) - b2);
      const T step = nesterov ? g * (T(1) - b1) + b1 * m : m;
      v[0][i] -= step * alpha / (std::sqrt(s) + eps);
    };
  }
};

/// v: w, m, v; h: β1ᵗ, lr, β1, β2, epsilon
struct AdaMax {
  template <class T>
  static auto bind(const T* h, bool) {
    return [alpha = h[1] / (T(1) - h[0]), b1 = h[2], b2 = h[3], eps = h[4]](T* const* v, int64_t i, T g) {
      T &m = v[1][i], &s = v[2][i];
      m += (g - m) * (T(1) - b1);
      const T decayed = b2 * s, size = std::fabs(g);
      s = decayed > size ? decayed : size;
      v[0][i] -= alpha * m / (s + eps);
    };
  }
};

/// v: w, m, v, vhat; h: β1ᵗ, β2ᵗ, lr, β1, β2, epsilon
struct AmsGrad {
  template <class T>
  static auto bind(const T* h, bool) {
    const T alpha = h[2] * std::sqrt(T(1) - h[1]) / (T(1) - h[0]);
    return [alpha, b1 = h[3], b2 = h[4], eps = h[5]](T* const* v, int64_t i, T g) {
      T &m = v[1][i], &s = v[2][i], &hat = v[3][i];
      m += (g - m) * (T(1) - b1);
      s += (g * g - s) * (T(1) - b2);
      if (s > hat) hat = s;
      v[0][i] -= m * alpha / (std::sqrt(hat) + eps);
    };
  }
};

/// The common part of both Ftrl forms: `used` is the gradient that enters z.
template <class T>
void ftrl_step(T* const* v, int64_t i, T g, T used, T lr, T l1, T l2, T power) {
  T &w = v[0][i], &n = v[1][i], &z = v[2][i];
  const T grown = n + g * g;
  const bool root = power == T(-0.5);
  const T now = root ? std::sqrt(grown) : std::pow(grown, -power);
  const T before = root ? std::sqrt(n) : std::pow(n, -power);
  z += used - (now - before) / lr * w;
  w = std::fabs(z) > l1 ? (sign(z) * l1 - z) / (now / lr + T(2) * l2) : T(0);
  n = grown;
}

/// v: w, accum, linear; h: lr, l1, l2, lr_power
struct Ftrl {
  template <class T>
  static auto bind(const T* h, bool) {
    return [lr = h[0], l1 = h[1], l2 = h[2], p = h[3]](T* const* v, int64_t i, T g) {
      ftrl_step(v, i, g, g, lr, l1, l2, p);
    };
  }
};

/// v: w, accum, linear; h: lr, l1, l2, l2_shrinkage, lr_power
struct FtrlV2 {
  template <class T>
  static auto bind(const T* h, bool) {
    return [lr = h[0], l1 = h[1], l2 = h[2], shrink = h[3], p = h[4]](T* const* v, int64_t i, T g) {
      ftrl_step(v, i, g, g + T(2) * shrink * v[0][i], lr, l1, l2, p);
    };
  }
};

template <class T>
T soft_threshold(T w, T rate, T l1, T l2) {
  if (l1 > T(0)) {
    const T left = std::fabs(w) - rate * l1;
    return sign(w) * (left > T(0) ? left : T(0)) / (T(1) + l2 * rate);
  }
  return w / (T(1) + l2 * rate);
}

/// v: w; h: lr, l1, l2
struct ProximalGradientDescent {
  template <class T>
  static auto bind(const T* h, bool) {
    return [lr = h[0], l1 = h[1], l2 = h[2]](T* const* v, int64_t i, T g) {
      v[0][i] = soft_threshold(v[0][i] - g * lr, lr, l1, l2);
    };
  }
};

/// v: w, accum; h: lr, l1, l2
struct ProximalAdagrad {
  template <class T>
  static auto bind(const T* h, bool) {
    return [lr = h[0], l1 = h[1], l2 = h[2]](T* const* v, int64_t i, T g) {
      T& a = v[1][i];
      a += g * g;
      const T rate = lr / std::sqrt(a);
      v[0][i] = soft_threshold(v[0][i] - g * rate, rate, l1, l2);
    };
  }
};

/// v: w, Σg, Σg²; h: lr, l1, l2, global step
struct AdagradDa {
  template <class T>
  static auto bind(const T* h, bool) {
    return [lr = h[0], l1 = h[1], l2 = h[2], step = h[3]](T* const* v, int64_t i, T g) {
      T &sum = v[1][i], &squares = v[2][i];
      sum += g;
      squares += g * g;
      const T left = std::fabs(sum) - l1 * step;
      const T pulled = l1 > T(0) ? sign(sum) * (left > T(0) ? left : T(0)) : sum;
      v[0][i] = -pulled * lr / (l2 * step * lr + std::sqrt(squares));
    };
  }
};

}  // namespace sluice::kernels::apply_rules
