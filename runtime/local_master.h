#pragma once
// In-process shared runtimes: the sessions whose options hold the same LocalMaster's resources work on one
// set of variables, queues and random streams, as the sessions of a cluster do on its parameter servers. So a
// chief and its workers can run as threads of one process, each with a graph and a session of its own. The
// state lives as long as somebody holds it. Any thread.
//
//   auto master = local_master("demo");                       // keeps the state between sessions
//   Session s(g, {.resources = local_master("demo")});        // the same state

#include <memory>
#include <string>

#include "runtime/resource.h"

namespace sluice::runtime {

/// The resources named `name`, made on first use; gone with the last holder.
std::shared_ptr<ResourceManager> local_master(const std::string& name);

/// What `master` means to a session: null for "" (the session's own), the shared resources for "local:NAME";
/// Unimplemented for anything else, InvalidArgument for "local:" without a name.
std::shared_ptr<ResourceManager> resolve_master(const std::string& master);

/// True for "local:NAME".
bool is_local_master(const std::string& master);

}  // namespace sluice::runtime
