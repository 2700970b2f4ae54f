#include "runtime/data/idx.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "graph/support/check.h"

namespace sluice::runtime::data {

namespace {

struct CloseFile {
  void operator()(gzFile_s* f) const { gzclose(f); }
};

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), file_(gzopen(path.c_str(), "rb")) {
    SLUICE_REQUIRE(file_ != nullptr, errno == ENOENT ? Code::kNotFound : Code::kPermissionDenied,
                   "cannot open IDX file ", path, ": ", std::strerror(errno));
  }
  // zlib passes plain files through unchanged, so both kinds are read alike.
  void read(uint8_t* dst, size_t bytes, const char* what) {
    while (bytes > 0) {
      const auto piece = static_cast<unsigned>(std::min<size_t>(bytes, 1u << 20));
      const int got = gzread(file_.get(), dst, piece);
      int code = Z_OK;
      const char* text = gzerror(file_.get(), &code);
      SLUICE_REQUIRE(got >= 0 && code != Z_DATA_ERROR, Code::kDataLoss, "IDX file ", path_,
                     " is damaged: ", text);
      SLUICE_REQUIRE(got > 0, Code::kDataLoss, "IDX file ", path_, " is truncated: it ends within its ", what,
                     ", ", bytes, " bytes early");
      dst += got;
      bytes -= static_cast<size_t>(got);
    }
  }
  bool at_end() {
    uint8_t byte;
    return gzread(file_.get(), &byte, 1) == 0;
  }

 private:
  const std::string& path_;
  std::unique_ptr<gzFile_s, CloseFile> file_;
};

}  // namespace

IdxData read_idx(const std::string& path) {
  Reader in(path);
  uint8_t head[4];
  in.read(head, sizeof head, "header");
  SLUICE_REQUIRE(head[0] == 0 && head[1] == 0, Code::kDataLoss, path,
                 " is not an IDX file: bad magic number");
  SLUICE_REQUIRE(head[2] == 0x08, Code::kDataLoss, "IDX file ", path, " holds element type ",
                 static_cast<int>(head[2]), "; only unsigned bytes (8) are read");
  SLUICE_REQUIRE(head[3] >= 1 && head[3] <= 4, Code::kDataLoss, "IDX file ", path, " has ",
                 static_cast<int>(head[3]), " dimensions; 1 to 4 are read");
  IdxData data;
  uint64_t total = 1;
  for (int i = 0; i < head[3]; ++i) {
    uint8_t b[4];
    in.read(b, sizeof b, "header");
    const uint64_t dim = uint64_t{b[0]} << 24 | uint64_t{b[1]} << 16 | uint64_t{b[2]} << 8 | b[3];
    total = dim != 0 && total > (uint64_t{1} << 34) / dim ? UINT64_MAX : total * dim;
    SLUICE_REQUIRE(total <= uint64_t{1} << 34, Code::kDataLoss, "IDX file ", path,
                   " claims more than 16 GiB of elements");
    data.dims.push_back(static_cast<int64_t>(dim));
  }
  // Grown as the bytes come in: the header's word alone allocates nothing.
  constexpr uint64_t kPiece = 1u << 24;
  for (uint64_t done = 0; done < total;) {
    const uint64_t piece = std::min(kPiece, total - done);
    data.values.resize(done + piece);
    in.read(data.values.data() + done, piece, "data");
    done += piece;
  }
  SLUICE_REQUIRE(in.at_end(), Code::kDataLoss, "IDX file ", path, " has bytes after its ", total,
                 " elements");
  return data;
}

}  // namespace sluice::runtime::data
