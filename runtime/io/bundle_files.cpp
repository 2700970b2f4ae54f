// A bundle's files as files: which names are free, which are left over, and joining bundles by renaming.
#include <cstdio>
#include <filesystem>
#include <set>

#include "graph/support/log.h"
#include "runtime/io/bundle.h"
#include "runtime/io/bundle_format.h"
#include "runtime/io/file.h"
#include "runtime/io/table.h"
#include "runtime/io/v1_tables.h"

namespace sluice::runtime::io {
namespace {

namespace fs = std::filesystem;

fs::path directory_of(const std::string& prefix) {
  fs::path d = fs::path(prefix).parent_path();
  return d.empty() ? "." : d;
}

bool five_digits(std::string_view s) {
  return s.size() == 5 && s.find_first_not_of("0123456789") == std::string_view::npos;
}

// "<stem>.data-K-of-N".
bool is_shard_of(std::string_view file, std::string_view stem) {
  constexpr std::string_view kInfix = ".data-";
  if (!file.starts_with(stem)) return false;
  file.remove_prefix(stem.size());
  if (!file.starts_with(kInfix)) return false;
  file.remove_prefix(kInfix.size());
  return file.size() == 14 && five_digits(file.substr(0, 5)) && file.substr(5, 4) == "-of-" &&
         five_digits(file.substr(9));
}

std::vector<fs::path> shards_of(const std::string& prefix) {
  std::vector<fs::path> out;
  const std::string stem = fs::path(prefix).filename().string();
  std::error_code ignored;
  for (const auto& f : fs::directory_iterator(directory_of(prefix), ignored))
    if (is_shard_of(f.path().filename().string(), stem)) out.push_back(f.path());
  return out;
}

void remove_file(const fs::path& path) {
  std::error_code why;
  fs::remove(path, why);
  if (why) log_warning("Ignoring: ", path.string(), "; ", why.message());
}

// 0 when there is none that can be read.
int shards_in_use(const std::string& prefix) {
  const std::string path = prefix + ".index";
  if (!file_exists(path)) return 0;
  try {
    const TableEntries table = read_table(read_file(path), path);
    if (table.empty() || !table[0].first.empty()) return 0;
    return decode_bundle_header(table[0].second, path);
  } catch (const Error&) {
    return -1;  // it may be whole for others: no data file that is there is replaced
  }
}

}  // namespace

int free_shard_count(const std::string& prefix, int wanted) {
  const int used = shards_in_use(prefix);
  int files = wanted;
  while (used == files || (used < 0 && file_exists(shard_path(prefix, 0, files)))) ++files;
  return files;
}

void remove_stale_shards(const std::string& prefix, int num_shards) {
  std::set<std::string> current;
  for (int k = 0; k < num_shards; ++k) current.insert(fs::path(shard_path(prefix, k, num_shards)).filename());
  for (const fs::path& f : shards_of(prefix))
    if (!current.contains(f.filename().string())) remove_file(f);
}

void remove_checkpoint_files(const std::string& prefix) {
  const bool v2 = file_exists(prefix + ".index");
  // Index first: what remains after a crash is then no checkpoint.
  remove_file(prefix + ".index");
  for (const fs::path& f : shards_of(prefix)) remove_file(f);
  // A file of just that name may be anybody's; a V1 checkpoint is a table.
  if (!v2 && is_table(prefix)) remove_file(prefix);
  remove_file(prefix + ".meta");
}

void merge_bundles(const std::vector<std::string>& prefixes, const std::string& destination) {
  SLUICE_REQUIRE(!prefixes.empty(), Code::kInvalidArgument, destination, ": there is nothing to merge");
  std::map<std::string, BundleEntry, std::less<>> entries;
  std::map<std::pair<std::string, int>, int> numbers;  // (part, its shard) → new shard
  std::vector<std::string> data;                       // by new shard
  auto take = [&](const std::string& prefix, const BundleReader& part, const std::string& key, BundleEntry e,
                  bool is_slice) {
    if (e.slices.empty()) {
      const auto [it, fresh] = numbers.try_emplace({prefix, e.shard}, static_cast<int>(data.size()));
      if (fresh) data.push_back(shard_path(prefix, e.shard, part.num_shards()));
      e.shard = it->second;
    }
    const auto [it, fresh] = entries.try_emplace(key, e);
    if (fresh) return;
    BundleEntry& former = it->second;
    SLUICE_REQUIRE(!is_slice && !e.slices.empty() && !former.slices.empty(), Code::kInvalidArgument,
                   "Duplicate tensor keyed by ", is_slice ? std::string("a slice") : key,
                   " encountered, when merging prefix: ", prefix);
    SLUICE_REQUIRE(former.dtype == e.dtype && former.dims == e.dims, Code::kInvalidArgument, prefix,
                   ": the slices of '", key, "' do not agree with the other parts on its shape and type");
    former.slices.insert(former.slices.end(), e.slices.begin(), e.slices.end());
  };
  for (const std::string& prefix : prefixes) {
    const BundleReader part(prefix);
    SLUICE_REQUIRE(!part.is_v1(), Code::kUnimplemented, prefix, ": V1 checkpoints cannot be merged");
    for (const auto& [key, e] : part.entries()) take(prefix, part, key, e, false);
    for (const auto& [key, e] : part.slice_entries()) take(prefix, part, key, e, true);
  }
  require_parent_directory(destination);
  const int stored = static_cast<int>(data.size());
  const int files = free_shard_count(destination, std::max(stored, 1));
  TableBuilder index;
  index.add("", encode_bundle_header(files));
  for (const auto& [key, e] : entries) index.add(key, encode_bundle_entry(e));
  AtomicFile index_file(destination + ".index");
  index_file.append(index.finish());
  index_file.sync();
  for (int k = 0; k < files; ++k) {
    const std::string to = shard_path(destination, k, files);
    if (k >= stored) {
      write_file_atomically(to, "");
      continue;
    }
    const std::string& from = data[static_cast<size_t>(k)];
    if (std::rename(from.c_str(), to.c_str()) != 0) throw_errno(from, cat("renaming to ", to), errno);
  }
  sync_parent_directory(destination);
  index_file.commit();
  remove_stale_shards(destination, files);
  for (const std::string& prefix : prefixes)
    if (prefix != destination) remove_checkpoint_files(prefix);
}

}  // namespace sluice::runtime::io
