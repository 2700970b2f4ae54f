#pragma once
// State beside the variables that a checkpoint must hold for a resumed run to go on bit for bit: positions of
// input iterators, anything a resource keeps between steps. An object that has such state implements Saveable
// and registers with its session's resources; savers collect every registered one. A state that was restored
// before its object exists waits for it. Any thread; a Saveable locks its own state, and must not register
// from inside save() or restore().
//
//   SaveableRegistry::of(session.resources()).add(iterator);   // the iterator keeps itself alive elsewhere

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/array.h"

namespace sluice::runtime {

class ResourceManager;

class Saveable {
 public:
  virtual ~Saveable() = default;
  /// Names the object among those of its session, the same in every process that runs the graph: the node's
  /// name, as a rule.
  virtual std::string key() const = 0;
  /// Its state now, by names of its own ("position", "shuffle/buffer"). The arrays must not change later:
  /// they may be written while the next steps run.
  virtual std::vector<std::pair<std::string, Array>> save() = 0;
  /// Takes the state that `save` gave. InvalidArgument when it does not fit; the object is then as before.
  virtual void restore(const std::map<std::string, Array>& state) = 0;
};

class SaveableRegistry {
 public:
  /// The registry of a session's resources, made on first use.
  static SaveableRegistry& of(ResourceManager& resources);

  /// Registers it (weakly); a state restored earlier for its key is handed to it at once. A second live
  /// object of one key is AlreadyExists.
  void add(const std::shared_ptr<Saveable>& saveable);
  /// Live objects, sorted by key.
  std::vector<std::shared_ptr<Saveable>> all() const;
  /// Every object's state, sorted by key; states that still wait for their object are included, so that a
  /// save before the first step loses nothing.
  std::map<std::string, std::map<std::string, Array>> save() const;
  /// Hands each state to its object, or keeps it until the object is added.
  void restore(std::map<std::string, std::map<std::string, Array>> states);

 private:
  mutable std::mutex mutex_;  // guards the maps
  std::map<std::string, std::weak_ptr<Saveable>> objects_;
  std::map<std::string, std::map<std::string, Array>> waiting_;
};

}  // namespace sluice::runtime
