#pragma once
// Index entries of a bundle to and from their bytes, and the layout of strings; shared by bundle reader and
// writer. Pure; any thread.

#include <string>
#include <string_view>
#include <vector>

#include "runtime/io/bundle.h"

namespace sluice::runtime::io {

/// The value of key "" for a bundle of one shard.
std::string encode_bundle_header(int num_shards);
/// Number of shards; DataLoss or InvalidArgument (version, endianness) naming `path`.
int decode_bundle_header(std::string_view bytes, const std::string& path);
std::string encode_bundle_entry(const BundleEntry& entry);
/// DataLoss naming `path` and `key` when it is no entry; dims and type are checked, not sizes.
BundleEntry decode_bundle_entry(std::string_view bytes, const std::string& key, const std::string& path);

/// A string tensor's bytes as stored, and the CRC (unmasked) that its entry states, which covers the lengths
/// as fixed-width integers and not as the varints in the file.
std::string encode_strings(const std::vector<std::string>& strings, uint32_t* crc);
/// Null-terminated reason when the bytes do not hold `count` strings, else nullptr. `count` must be ≤
/// bytes.size().
const char* decode_strings(std::string_view bytes, uint64_t count, std::vector<std::string>* out,
                           uint32_t* crc);

}  // namespace sluice::runtime::io
