#pragma once
// What run and explain share: feeds from the command line, a session over a loaded graph, initialisation,
// restoring and saving by the graph's own saver or by ours.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/session.h"
#include "tools/graph/files.h"

namespace sluice::tools {

/// Declares --feed, --init, --restore, --threads.
void declare_session_options(Args& args);
/// "x=x.npy" (any .npy file, converted to the tensor's type where no value changes its meaning) or "x=0.5" (a
/// scalar), "x=[2,3]" (zeros). UsageError for unknown tensors, files that cannot be read, and shapes that the
/// tensor can't have.
std::vector<runtime::Feed> parse_feeds(const Args& args, const graph::Graph& graph);

/// A session with soft placement (decisions #24), after --init and --restore. Problems with what --init and
/// --restore name are UsageErrors; errors of the run are Errors.
std::unique_ptr<runtime::Session> open_session(const Args& args, const LoadedGraph& loaded,
                                               const std::vector<runtime::Feed>& feeds);

/// The graph's saver: from its SaverDef, or nodes under the names that TensorFlow's Saver gives.
std::optional<graph::SaverInfo> find_saver(const LoadedGraph& loaded);
void restore(runtime::Session& session, const LoadedGraph& loaded, const std::string& prefix);
/// Writes the checkpoint and the directory's `checkpoint` state file.
void save(runtime::Session& session, const LoadedGraph& loaded, const std::string& prefix);

}  // namespace sluice::tools
