#pragma once
// Where elements come from: memory, functions, files. Each call makes a Dataset (dataset.h). File sources
// read their files in the order given; an error names file, record and offset, costs what cannot be read and
// nothing more, so that `ignore_errors` may go on behind it. Any thread.

#include <functional>
#include <string>
#include <vector>

#include "runtime/data/dataset.h"
#include "runtime/io/record.h"

namespace sluice::runtime::data {

/// Element i holds row i of every array. InvalidArgument when the arrays' first dimensions differ. Names may
/// be empty.
DatasetPtr tensor_slices(std::vector<Array> arrays, std::vector<std::string> names = {});
/// One element: the arrays as they are.
DatasetPtr tensors(std::vector<Array> arrays, std::vector<std::string> names = {});
/// int64 scalars start, start + step … before stop.
DatasetPtr range(int64_t start, int64_t stop, int64_t step = 1);

/// Fills the next element; false at the end. Called by one thread at a time; may block as long as it asks
/// `cancel`.
using GenerateFn = std::function<bool(Element& out, const CancelToken& cancel)>;
/// `start` gives the function of a new pass. Resuming calls that function anew as often as it was called
/// before, so it should depend on nothing but itself.
DatasetPtr generator(ElementSpec spec, std::function<GenerateFn()> start);

/// Names of the files that match the shell pattern, sorted; NotFound "No files matched pattern" when none
/// do.
std::vector<std::string> match_files(const std::string& pattern);

/// The records of TFRecord files: string scalars. A damaged record is an error and the next one comes after
/// it, or is passed over where the options say so.
DatasetPtr tf_records(std::vector<std::string> files, io::RecordReaderOptions options = {});
/// Lines without their line ends ("\n" or "\r\n"): string scalars.
DatasetPtr text_lines(std::vector<std::string> files);

struct CsvOptions {
  bool header = false;  // the first line of every file is skipped
  char delimiter = ',';
  bool quotes = true;            // "a, ""b""" is one field
  std::string na_value;          // this text counts as empty
  std::vector<int> select_cols;  // ascending; empty: all
};
/// One column: its component (a scalar) and what an empty field means; without a default it is required.
struct CsvColumn {
  std::string name;
  DType dtype = DType::kFloat;  // float, double, int32, int64, string
  std::optional<Array> default_value;
};
/// Lines of comma-separated values (RFC 4180), one scalar a column; error texts of tf.data's CsvDataset.
DatasetPtr csv(std::vector<std::string> files, std::vector<CsvColumn> columns, CsvOptions options = {});

/// IDX files (MNIST and relatives), one component a file, row by row; read whole when called.
DatasetPtr idx(const std::vector<std::string>& files, std::vector<std::string> names = {});

}  // namespace sluice::runtime::data
