#pragma once
// What the tests of input pipelines share: elements as text, whole runs, a folder that goes away.

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "dsl/data.h"

namespace sluice::pipetest {

using runtime::Array;
using runtime::CancelToken;
using runtime::data::Element;
using runtime::data::Pipeline;

/// Types, shapes and every bit of an element.
inline std::string text(const Element& e) {
  std::string s;
  for (const Array& a : e.values) {
    s += cat(s.empty() ? "" : " ", a.dtype(), graph::dims_string(a.dims()), ":");
    if (a.dtype() == graph::DType::kString) {
      for (const std::string& v : a.string_values()) s += cat("'", v, "'");
      continue;
    }
    if (a.dtype() == graph::DType::kInt64) {
      for (int64_t v : a.as<int64_t>()) s += cat(v, ",");
      continue;
    }
    const auto* p = static_cast<const unsigned char*>(a.data());
    for (size_t i = 0; i < a.bytes(); ++i)
      s += cat("0123456789abcdef"[p[i] >> 4], "0123456789abcdef"[p[i] & 15]);
  }
  return s;
}

/// The next elements, at most `limit`; errors stand as "error: …".
inline std::vector<std::string> run(Pipeline& p, size_t limit = 1'000'000) {
  std::vector<std::string> all;
  Element e;
  while (all.size() < limit) {
    try {
      if (!p.next(e)) break;
      all.push_back(text(e));
    } catch (const Error& error) {
      all.push_back("error: " + error.message());
    }
  }
  return all;
}
inline std::vector<std::string> run(const dsl::data::Dataset& d, size_t limit = 1'000'000) {
  Pipeline p = d.iterate();
  return run(p, limit);
}

/// The numbers of a dataset of int64 scalars or vectors, joined.
inline std::vector<int64_t> numbers(const dsl::data::Dataset& d, size_t limit = 1'000'000) {
  std::vector<int64_t> all;
  Pipeline p = d.iterate();
  Element e;
  while (all.size() < limit && p.next(e))
    for (int64_t v : e[0].as<int64_t>()) all.push_back(v);
  return all;
}

class Folder {
 public:
  explicit Folder(const std::string& name)
      : path_(std::filesystem::temp_directory_path() /
              ("sluice_" + name + "_" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return file(name);
  }
  std::string str() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

inline runtime::data::MapFn times(int64_t k) {
  return [k](Element& in, Element& out) { out.make<int64_t>(0, {})[0] = in[0].as<int64_t>()[0] * k; };
}

}  // namespace sluice::pipetest
