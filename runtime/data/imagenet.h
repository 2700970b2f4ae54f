#pragma once
// ImageNet from TFRecord files: which files a folder has, and the producer that reads, shuffles, decodes and
// distorts them (benchmark-tool §9.2, §9.3, §10). A producer belongs to one Prefetcher. Errors name the
// folder and pattern, or the file and record.

#include <memory>
#include <string>
#include <vector>

#include "runtime/data/image_set.h"

namespace sluice::runtime::data {

/// Sorted paths of dir/train-*-of-* or dir/validation-*-of-*. NotFound "Found no files in --data_dir
/// matching: …" when there are none.
std::vector<std::string> imagenet_files(const std::string& dir, bool training);

/// Records in the files, by their framing alone (contents are not read).
int64_t count_records(const std::vector<std::string>& files);

/// How a training walk mixes its records.
struct MixOptions {
  int interleave = 10;     // files read in turn
  int64_t buffer = 10000;  // records to draw from
};

/// Training (walk.shuffle) applies random crop, flip and colour; otherwise files and records come in order
/// through the evaluation crop. Labels are used as stored (1 … 1000).
std::unique_ptr<BatchProducer> imagenet_producer(std::vector<std::string> files, const WalkOptions& walk,
                                                 const PreprocessOptions& preprocess,
                                                 const MixOptions& mix = {});

}  // namespace sluice::runtime::data
