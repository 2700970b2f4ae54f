#include "tools/graph/feeds.h"

#include <charconv>
#include <limits>

#include "graph/support/file.h"
#include "runtime/io/npy.h"

namespace sluice::tools {
namespace {

using namespace graph;
using runtime::Array;
using runtime::Feed;

// NumPy makes doubles and int64s where the graph wants floats and int32s.
Array converted(const Array& value, DType to, const std::string& feed) {
  if (value.dtype() == to) return value;
  auto refuse = [&](const char* why) {
    throw UsageError(cat("--feed ", feed, ": the value is ", value.dtype(), ", the tensor is ", to, why));
  };
  const bool from_number =
      is_integer(value.dtype()) || value.dtype() == DType::kFloat || value.dtype() == DType::kDouble;
  if (!from_number || !(is_integer(to) || to == DType::kFloat || to == DType::kDouble)) refuse("");
  if (is_integer(to) && !is_integer(value.dtype())) refuse(" (fractions would be lost)");
  const Array out = value.cast(to);
  if (is_integer(to)) {
    const auto before = value.to_literal().to_int64s(), after = out.to_literal().to_int64s();
    if (before != after) refuse(" (a value does not fit)");
  }
  return out;
}

std::optional<Array> scalar_of(const std::string& text) {
  int64_t i = 0;
  double d = 0;
  const char *begin = text.data(), *end = begin + text.size();
  if (const auto r = std::from_chars(begin, end, i); r.ec == std::errc() && r.ptr == end)
    return Array::scalar(i);
  if (const auto r = std::from_chars(begin, end, d); r.ec == std::errc() && r.ptr == end)
    return Array::scalar(d);
  if (text == "true" || text == "false") return Array::scalar(text == "true");
  return std::nullopt;
}

// "[2,3]": zeros of that shape, for plans and timings.
Array zeros_of(const std::string& text, DType dtype, const std::string& feed) {
  Dims dims;
  std::string_view rest = std::string_view(text).substr(1);
  while (rest != "]") {
    int64_t d = 0;
    const auto r = std::from_chars(rest.data(), rest.data() + rest.size(), d);
    if (r.ec != std::errc() || d < 0) throw UsageError(cat("--feed ", feed, ": '", text, "' is no shape"));
    dims.push_back(d);
    rest.remove_prefix(static_cast<size_t>(r.ptr - rest.data()));
    if (rest.starts_with(',')) rest.remove_prefix(1);
    if (rest.empty()) throw UsageError(cat("--feed ", feed, ": '", text, "' is no shape"));
  }
  return as_usage([&] { return Array::zeros(dtype, dims); });
}

Feed parse_feed(const std::string& text, const Graph& graph) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    throw UsageError(cat("--feed takes NAME=FILE.npy, NAME=NUMBER or NAME=[SHAPE], not '", text, "'"));
  const Output output = output_named(graph, text.substr(0, equals));
  const std::string value = text.substr(equals + 1);
  std::optional<Array> array;
  if (value[0] == '[') array = zeros_of(value, output.dtype(), text);
  if (!array && !file_exists(value)) array = scalar_of(value);
  if (!array) array = as_usage([&] { return runtime::io::read_npy(value); });
  const Shape& wanted = output.shape();
  // A number is a scalar of whatever dtype and stands for itself only.
  if (!wanted.compatible(Shape(array->dims())))
    throw UsageError(cat("--feed ", text, ": Cannot feed value of shape ", dims_string(array->dims()),
                         " for Tensor '", output.name(), "', which has shape ", wanted));
  return {output, converted(*array, output.dtype(), text)};
}

}  // namespace

void declare_session_options(Args& args) {
  args.repeated("feed",
                "NAME=FILE.npy, NAME=NUMBER or NAME=[SHAPE] (zeros): the tensor's value in every step; may "
                "be repeated")
      .repeated("init", "node to run once before everything else (an initialiser); may be repeated")
      .option("restore", "checkpoint prefix to restore after --init")
      .option("threads", "width of the compute team; 0: measured", "0");
}

std::vector<Feed> parse_feeds(const Args& args, const Graph& graph) {
  std::vector<Feed> feeds;
  for (const std::string& text : args.all("feed")) feeds.push_back(parse_feed(text, graph));
  return feeds;
}

std::unique_ptr<runtime::Session> open_session(const Args& args, const LoadedGraph& loaded,
                                               const std::vector<Feed>& feeds) {
  std::vector<Node*> inits;
  for (const std::string& name : args.list("init")) inits.push_back(&node_named(*loaded.graph, name));
  const int64_t threads = args.integer("threads");
  if (threads < 0 || threads > 4096) throw UsageError(cat("--threads ", threads, " is no number of threads"));
  const std::string checkpoint = args.get("restore");
  if (!checkpoint.empty() && !file_exists(checkpoint + ".index"))
    throw UsageError(cat("--restore ", checkpoint, ": there is no '", checkpoint, ".index'"));
  runtime::SessionOptions options;
  options.intra_op_threads = static_cast<int>(threads);
  options.allow_soft_placement = true;
  auto session = std::make_unique<runtime::Session>(*loaded.graph, options);
  // An initialiser may read what is fed to it, and nothing else may be fed.
  for (Node* init : inits) {
    std::vector<Feed> used;
    for (const Node* n : ancestors(std::vector<Node*>{init}))
      for (const Feed& f : feeds)
        if (f.output.node == n) used.push_back(f);
    session->run({}, used, {init});
  }
  if (!checkpoint.empty()) restore(*session, loaded, checkpoint);
  return session;
}

}  // namespace sluice::tools
