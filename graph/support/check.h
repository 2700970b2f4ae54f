#pragma once
// Errors. One exception type, `Error`, with TensorFlow's code names. Two words for two kinds of failure:
// SLUICE_REQUIRE(cond, code, …) is the caller's mistake and says how to mend it; SLUICE_CHECK(cond, …) is a
// bug of ours and the text says so. Messages are built only on failure. Any thread may throw and catch;
// worker threads never leak: the executor keeps the first error and rethrows it from Session::run. Example:
// SLUICE_REQUIRE(rank == 2, Code::kInvalidArgument, "MatMul '", name, "' wants matrices, got rank ", rank);

#include <exception>
#include <string>
#include <string_view>

#include "graph/support/cat.h"
#include "graph/support/loc.h"

namespace sluice {

/// TensorFlow's canonical codes, with its numbers.
enum class Code : int {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

/// "INVALID_ARGUMENT" and so on.
std::string_view code_name(Code code);

/// What every public call throws. `node` is the op the failure belongs to ("" if none), `loc` the author's
/// line.
class Error : public std::exception {
 public:
  Error(Code code, std::string message, std::string node = {}, Loc loc = {});
  const char* what() const noexcept override { return what_.c_str(); }
  Code code() const { return code_; }
  /// The text without node and line.
  const std::string& message() const { return message_; }
  const std::string& node() const { return node_; }
  Loc loc() const { return loc_; }

 private:
  Code code_;
  std::string message_, node_, what_;
  Loc loc_;
};

[[noreturn]] void throw_error(Code code, std::string message, std::string node = {}, Loc loc = {});
[[noreturn]] void throw_internal(const char* cond, const char* file, int line, std::string message);

}  // namespace sluice

#define SLUICE_REQUIRE(cond, code, ...)                          \
  do {                                                           \
    if (!(cond)) [[unlikely]]                                    \
      ::sluice::throw_error((code), ::sluice::cat(__VA_ARGS__)); \
  } while (0)

#define SLUICE_CHECK(cond, ...)                                                        \
  do {                                                                                 \
    if (!(cond)) [[unlikely]]                                                          \
      ::sluice::throw_internal(#cond, __FILE__, __LINE__, ::sluice::cat(__VA_ARGS__)); \
  } while (0)
