#include "runtime/local_master.h"

#include <map>
#include <mutex>

#include "graph/support/check.h"

namespace sluice::runtime {
namespace {

constexpr const char kPrefix[] = "local:";

struct Masters {
  std::mutex mutex;  // guards by_name
  std::map<std::string, std::weak_ptr<ResourceManager>> by_name;
};

}  // namespace

bool is_local_master(const std::string& master) { return master.rfind(kPrefix, 0) == 0; }

std::shared_ptr<ResourceManager> local_master(const std::string& name) {
  // The one place a name must mean the same thing to threads that share nothing else.
  static Masters masters;
  std::lock_guard lock(masters.mutex);
  for (auto it = masters.by_name.begin(); it != masters.by_name.end();) {
    it = it->second.expired() ? masters.by_name.erase(it) : std::next(it);
  }
  std::weak_ptr<ResourceManager>& slot = masters.by_name[name];
  std::shared_ptr<ResourceManager> found = slot.lock();
  if (!found) slot = found = std::make_shared<ResourceManager>();
  return found;
}

std::shared_ptr<ResourceManager> resolve_master(const std::string& master) {
  if (master.empty()) return nullptr;
  SLUICE_REQUIRE(
      is_local_master(master), Code::kUnimplemented, "master '", master,
      "': this version knows \"\" (a runtime of the session's own) and \"local:NAME\" (a runtime that "
      "sessions of this process share); clusters are not there yet");
  const std::string name = master.substr(sizeof(kPrefix) - 1);
  SLUICE_REQUIRE(!name.empty(), Code::kInvalidArgument, "master 'local:' needs a name behind the colon");
  return local_master(name);
}

}  // namespace sluice::runtime
