#include "runtime/io/deflate.h"

#include <zlib.h>

#include <algorithm>
#include <climits>

#include "graph/support/check.h"

namespace sluice::runtime::io {
namespace {

constexpr int kWindow = 15, kGzipWindow = 15 + 16, kMemory = 8;
constexpr size_t kPiece = size_t{1} << 16;

int window_of(Compression c) {
  SLUICE_CHECK(c != Compression::kNone, "no compression has no stream");
  return c == Compression::kGzip ? kGzipWindow : kWindow;
}

uInt piece(size_t n) { return static_cast<uInt>(std::min<size_t>(n, UINT_MAX)); }

// zlib does not write to its input, but its older headers do not say so.
Bytef* bytes_of(std::string_view s) { return reinterpret_cast<Bytef*>(const_cast<char*>(s.data())); }

}  // namespace

Compression compression_from_name(std::string_view name) {
  if (name.empty()) return Compression::kNone;
  if (name == "ZLIB") return Compression::kZlib;
  if (name == "GZIP") return Compression::kGzip;
  throw_error(Code::kInvalidArgument,
              cat("Unsupported compression_type: ", name, ". It is one of \"\", \"ZLIB\" and \"GZIP\"."));
}

std::string_view compression_name(Compression c) {
  return c == Compression::kNone ? "" : c == Compression::kZlib ? "ZLIB" : "GZIP";
}

struct Deflater::Stream {
  z_stream z{};
};

Deflater::Deflater(Compression compression, int level) : stream_(std::make_unique<Stream>()) {
  SLUICE_REQUIRE(level >= -1 && level <= 9, Code::kInvalidArgument, "A compression level is -1 … 9, not ",
                 level);
  const int rc =
      deflateInit2(&stream_->z, level, Z_DEFLATED, window_of(compression), kMemory, Z_DEFAULT_STRATEGY);
  SLUICE_REQUIRE(rc == Z_OK, Code::kResourceExhausted, "zlib cannot start (", rc, ")");
}

Deflater::~Deflater() { deflateEnd(&stream_->z); }

void Deflater::run(std::string_view bytes, int mode, std::string* out) {
  z_stream& z = stream_->z;
  char piece_out[kPiece];
  do {
    z.next_in = bytes_of(bytes);
    z.avail_in = piece(bytes.size());
    bytes.remove_prefix(z.avail_in);
    const int how = bytes.empty() ? mode : Z_NO_FLUSH;
    do {
      z.next_out = reinterpret_cast<Bytef*>(piece_out);
      z.avail_out = kPiece;
      const int rc = deflate(&z, how);
      SLUICE_CHECK(rc == Z_OK || rc == Z_STREAM_END || rc == Z_BUF_ERROR, "deflate gives ", rc);
      out->append(piece_out, kPiece - z.avail_out);
    } while (z.avail_out == 0);
  } while (!bytes.empty());
}

void Deflater::add(std::string_view bytes, std::string* out) { run(bytes, Z_NO_FLUSH, out); }
void Deflater::flush(std::string* out) { run({}, Z_SYNC_FLUSH, out); }
void Deflater::finish(std::string* out) { run({}, Z_FINISH, out); }

struct Inflater::Stream {
  z_stream z{};
};

Inflater::Inflater(Compression compression) : stream_(std::make_unique<Stream>()) {
  const int rc = inflateInit2(&stream_->z, window_of(compression));
  SLUICE_REQUIRE(rc == Z_OK, Code::kResourceExhausted, "zlib cannot start (", rc, ")");
}

Inflater::~Inflater() { inflateEnd(&stream_->z); }

void Inflater::restart() { inflateReset(&stream_->z); }

Inflater::State Inflater::run(std::string_view* in, char* out, size_t size, size_t* got) {
  z_stream& z = stream_->z;
  z.next_in = bytes_of(*in);
  z.avail_in = piece(in->size());
  z.next_out = reinterpret_cast<Bytef*>(out);
  z.avail_out = piece(size);
  const uInt had_in = z.avail_in, had_out = z.avail_out;
  const int rc = inflate(&z, Z_NO_FLUSH);
  in->remove_prefix(had_in - z.avail_in);
  *got = had_out - z.avail_out;
  if (rc == Z_STREAM_END) return State::kEnd;
  return rc == Z_OK || rc == Z_BUF_ERROR ? State::kMore : State::kDamaged;
}

}  // namespace sluice::runtime::io
