#include "graph/support/check.h"

namespace sluice {

std::string_view code_name(Code code) {
  switch (code) {
    case Code::kOk:
      return "OK";
    case Code::kCancelled:
      return "CANCELLED";
    case Code::kUnknown:
      return "UNKNOWN";
    case Code::kInvalidArgument:
      return "INVALID_ARGUMENT";
    case Code::kDeadlineExceeded:
      return "DEADLINE_EXCEEDED";
    case Code::kNotFound:
      return "NOT_FOUND";
    case Code::kAlreadyExists:
      return "ALREADY_EXISTS";
    case Code::kPermissionDenied:
      return "PERMISSION_DENIED";
    case Code::kResourceExhausted:
      return "RESOURCE_EXHAUSTED";
    case Code::kFailedPrecondition:
      return "FAILED_PRECONDITION";
    case Code::kAborted:
      return "ABORTED";
    case Code::kOutOfRange:
      return "OUT_OF_RANGE";
    case Code::kUnimplemented:
      return "UNIMPLEMENTED";
    case Code::kInternal:
      return "INTERNAL";
    case Code::kUnavailable:
      return "UNAVAILABLE";
    case Code::kDataLoss:
      return "DATA_LOSS";
    case Code::kUnauthenticated:
      return "UNAUTHENTICATED";
  }
  return "UNKNOWN";
}

Error::Error(Code code, std::string message, std::string node, Loc loc)
    : code_(code), message_(std::move(message)), node_(std::move(node)), loc_(loc) {
  what_ = cat(code_name(code_), ": ", message_);
  if (!node_.empty()) what_ += cat("\n\t [[{{node ", node_, "}}]]");
  if (loc_.known()) what_ += cat("\n\t made at ", loc_.str());
}

void throw_error(Code code, std::string message, std::string node, Loc loc) {
  throw Error(code, std::move(message), std::move(node), loc);
}

void throw_internal(const char* cond, const char* file, int line, std::string message) {
  throw Error(Code::kInternal, cat(message.empty() ? "" : message + " ", "(check failed: ", cond, " at ",
                                   file, ":", line, "; this is a bug in Sluice, please report it)"));
}

}  // namespace sluice
