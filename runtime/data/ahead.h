#pragma once
// Elements made ahead of their reader by threads of their own: prefetch, and map on several threads. Threads
// start at the first `next`, and are joined when the iterator goes.

#include <functional>

#include "runtime/data/dataset.h"

namespace sluice::runtime::data {

/// Makes `out` of `in`; both may be changed (Element::take moves arrays across), bytes of `in` may not.
using MapFn = std::function<void(Element& in, Element& out)>;

struct AheadOptions {
  MapFn fn;          // null: elements pass as they are
  ElementSpec spec;  // of what fn makes
  int threads = 1;
  int depth = 2;  // elements that may wait for the reader, with the cheapest of functions
  bool ordered = true;
};

/// An iterator that reads `input` on other threads.
std::unique_ptr<Iterator> read_ahead(std::unique_ptr<Iterator> input, AheadOptions options);

}  // namespace sluice::runtime::data
