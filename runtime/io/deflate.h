#pragma once
// Compressed bytes: zlib and gzip streams, in pieces, so that nothing is held whole. One stream an object,
// one thread. What a compressed stream claims is never believed: output grows only as bytes really come out.

#include <memory>
#include <string>
#include <string_view>

namespace sluice::runtime::io {

enum class Compression { kNone, kZlib, kGzip };

/// TensorFlow's names: "", "ZLIB", "GZIP". InvalidArgument for others.
Compression compression_from_name(std::string_view name);
std::string_view compression_name(Compression c);

class Deflater {
 public:
  /// Level 1…9, or -1 for zlib's default. Not for kNone.
  explicit Deflater(Compression compression, int level = -1);
  ~Deflater();
  /// Appends what compressing `bytes` yields so far to `out`.
  void add(std::string_view bytes, std::string* out);
  /// Everything added so far can be read back from what `out` has now.
  void flush(std::string* out);
  /// Ends the stream.
  void finish(std::string* out);

 private:
  void run(std::string_view bytes, int mode, std::string* out);
  struct Stream;
  std::unique_ptr<Stream> stream_;
};

class Inflater {
 public:
  explicit Inflater(Compression compression);
  ~Inflater();
  enum class State { kMore, kEnd, kDamaged };
  /// Takes bytes off the front of `in` and writes up to `size` bytes to `out`; `*got` says how many. kMore
  /// with *got == 0 asks for more input, kEnd is the end of one stream (`restart` goes on with the next one).
  State run(std::string_view* in, char* out, size_t size, size_t* got);
  void restart();

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
};

}  // namespace sluice::runtime::io
