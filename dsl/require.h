#pragma once
// SLUICE_REQUIRE with the author's line: for builders that refuse an argument before a node exists.

#include "graph/support/check.h"

#define SLUICE_REQUIRE_AT(loc, cond, code, ...)                             \
  do {                                                                      \
    if (!(cond)) [[unlikely]]                                               \
      ::sluice::throw_error((code), ::sluice::cat(__VA_ARGS__), {}, (loc)); \
  } while (0)
