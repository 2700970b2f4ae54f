#include "runtime/saveable.h"

#include "runtime/resource.h"

namespace sluice::runtime {

SaveableRegistry& SaveableRegistry::of(ResourceManager& resources) {
  return *static_cast<SaveableRegistry*>(
      resources.get_or_create("saveables", "", [] { return std::make_shared<SaveableRegistry>(); }).get());
}

void SaveableRegistry::add(const std::shared_ptr<Saveable>& saveable) {
  const std::string key = saveable->key();
  std::map<std::string, Array> state;
  {
    std::lock_guard lock(mutex_);
    std::weak_ptr<Saveable>& slot = objects_[key];
    const std::shared_ptr<Saveable> former = slot.lock();
    SLUICE_REQUIRE(!former || former == saveable, Code::kAlreadyExists,
                   "two objects of this session save their ", "state under the key '", key, "'");
    slot = saveable;
    if (auto it = waiting_.find(key); it != waiting_.end()) {
      state = std::move(it->second);
      waiting_.erase(it);
    }
  }
  if (!state.empty()) saveable->restore(state);
}

std::vector<std::shared_ptr<Saveable>> SaveableRegistry::all() const {
  std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Saveable>> out;
  for (const auto& [key, weak] : objects_)
    if (auto live = weak.lock()) out.push_back(std::move(live));
  return out;
}

std::map<std::string, std::map<std::string, Array>> SaveableRegistry::save() const {
  std::map<std::string, std::map<std::string, Array>> out;
  {
    std::lock_guard lock(mutex_);
    out = waiting_;
  }
  for (const auto& object : all()) {
    auto& state = out[object->key()];
    for (auto& [name, value] : object->save()) state.insert_or_assign(name, std::move(value));
  }
  return out;
}

void SaveableRegistry::restore(std::map<std::string, std::map<std::string, Array>> states) {
  for (auto& [key, state] : states) {
    std::shared_ptr<Saveable> object;
    {
      std::lock_guard lock(mutex_);
      if (auto it = objects_.find(key); it != objects_.end()) object = it->second.lock();
      if (!object) {
        waiting_[key] = std::move(state);
        continue;
      }
      waiting_.erase(key);
    }
    object->restore(state);
  }
}

}  // namespace sluice::runtime
