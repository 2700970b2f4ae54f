#pragma once
// What the iterator ops of a session share: the pipelines that the program attached, and the position of each
// iterator. A pipeline is C++ code and stands in no graph file: the program that builds a graph attaches it
// to the graph (dsl/data.h does), one that loads a graph attaches its own to the session.

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "runtime/data/dataset.h"
#include "runtime/saveable.h"

namespace sluice::runtime::data {

/// Under an iterator's shared_name (its node's name where that is empty). A later call takes the place of an
/// earlier one from the next initialisation on. Any thread.
void attach(ResourceManager& session, const std::string& name, DatasetPtr dataset);
/// For every session of this graph object, until the graph goes. One thread at a time a graph, as building
/// is.
void attach(graph::Graph& graph, const std::string& name, DatasetPtr dataset);
/// The session's own, else the graph's; null when there is none.
DatasetPtr attached(ResourceManager& session, const graph::Graph& graph, const std::string& name);

/// One iterator of a session. Runs take turns; a run that waits for its turn or for an element ends with its
/// CancelToken. Its position is saved with checkpoints under "iterator/NAME".
class IteratorResource final : public Saveable {
 public:
  explicit IteratorResource(std::string name) : name_(std::move(name)) {}
  /// The session's iterator of this name, made and registered for saving at first use. Any thread.
  static std::shared_ptr<IteratorResource> of(ResourceManager& session, const std::string& name);

  const std::string& name() const { return name_; }
  bool initialized();
  /// At the dataset's beginning, or where a restored position says that no element has been taken from since.
  void initialize(DatasetPtr dataset, const CancelToken& cancel);
  /// The next element, given to `use` while the iterator is held; false at the end. FailedPrecondition when
  /// not initialised, unless `otherwise` gives the dataset to begin with.
  bool next(const CancelToken& cancel, const std::function<DatasetPtr()>& otherwise,
            const std::function<void(Element&)>& use);

  std::string key() const override { return "iterator/" + name_; }
  std::vector<std::pair<std::string, Array>> save() override;
  void restore(const std::map<std::string, Array>& state) override;

 private:
  class Turn;
  void begin(DatasetPtr dataset);

  const std::string name_;
  std::once_flag registered_;
  std::mutex mutex_;  // guards busy_; whoever set busy_ may use all below
  std::condition_variable free_;
  bool busy_ = false;
  std::unique_ptr<Pipeline> pipeline_;
  std::optional<std::string> restored_;  // a position restored, until the first element from there
  Element element_;                      // reused by every run
};

}  // namespace sluice::runtime::data
