#include "runtime/data/iterator_resource.h"
#include "runtime/data/copy_bytes.h"

#include <chrono>
#include <cstring>
#include <functional>

namespace sluice::runtime::data {
namespace {

constexpr auto kAskCancel = std::chrono::milliseconds(5);

/// Attached pipelines by name.
struct Attached {
  std::mutex mutex;  // guards datasets
  std::map<std::string, DatasetPtr> datasets;

  DatasetPtr find(const std::string& name) {
    std::lock_guard lock(mutex);
    const auto it = datasets.find(name);
    return it == datasets.end() ? nullptr : it->second;
  }
  void set(const std::string& name, DatasetPtr dataset) {
    std::lock_guard lock(mutex);
    datasets[name] = std::move(dataset);
  }
};

/// Graphs that have pipelines. Runs may look while another graph is being built, so the list has a mutex; an
/// entry goes with its graph.
struct GraphPipelines {
  std::mutex mutex;  // guards graphs
  std::map<const graph::Graph*, std::shared_ptr<Attached>> graphs;
  static GraphPipelines& all() {
    static auto* g = new GraphPipelines;  // never destroyed: graphs of static storage may go later
    return *g;
  }
};

/// What a graph holds on to: its entry's life.
struct Entry {
  explicit Entry(const graph::Graph* g) : graph(g) {}
  ~Entry() {
    GraphPipelines& all = GraphPipelines::all();
    std::lock_guard lock(all.mutex);
    all.graphs.erase(graph);
  }
  const graph::Graph* graph;
};

std::shared_ptr<Attached> of_session(ResourceManager& session) {
  return std::static_pointer_cast<Attached>(
      session.get_or_create("attached pipelines", "", [] { return std::make_shared<Attached>(); }));
}

}  // namespace

void attach(ResourceManager& session, const std::string& name, DatasetPtr dataset) {
  SLUICE_REQUIRE(dataset != nullptr, Code::kInvalidArgument, "attach(\"", name, "\") needs a dataset");
  of_session(session)->set(name, std::move(dataset));
}

void attach(graph::Graph& graph, const std::string& name, DatasetPtr dataset) {
  SLUICE_REQUIRE(dataset != nullptr, Code::kInvalidArgument, "attach(\"", name, "\") needs a dataset");
  GraphPipelines& all = GraphPipelines::all();
  std::shared_ptr<Attached> entry;
  {
    std::lock_guard lock(all.mutex);
    std::shared_ptr<Attached>& e = all.graphs[&graph];
    if (!e) e = std::make_shared<Attached>();
    entry = e;
  }
  std::any& holder = graph.attachment("runtime/data");
  if (!holder.has_value()) holder = std::make_shared<Entry>(&graph);
  entry->set(name, std::move(dataset));
}

DatasetPtr attached(ResourceManager& session, const graph::Graph& graph, const std::string& name) {
  if (DatasetPtr own = of_session(session)->find(name)) return own;
  GraphPipelines& all = GraphPipelines::all();
  std::shared_ptr<Attached> entry;
  {
    std::lock_guard lock(all.mutex);
    const auto it = all.graphs.find(&graph);
    if (it != all.graphs.end()) entry = it->second;
  }
  return entry ? entry->find(name) : nullptr;
}

/// The iterator to oneself.
class IteratorResource::Turn {
 public:
  Turn(IteratorResource& r, const CancelToken& cancel) : r_(r) {
    std::unique_lock lock(r.mutex_);
    while (r.busy_) {
      r.free_.wait_for(lock, kAskCancel, [&] { return !r.busy_; });
      if (r.busy_) cancel.check();
    }
    r.busy_ = true;
  }
  ~Turn() {
    std::lock_guard lock(r_.mutex_);
    r_.busy_ = false;
    r_.free_.notify_one();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  IteratorResource& r_;
};

std::shared_ptr<IteratorResource> IteratorResource::of(ResourceManager& session, const std::string& name) {
  auto r = std::static_pointer_cast<IteratorResource>(
      session.get_or_create("iterator", name, [&] { return std::make_shared<IteratorResource>(name); }));
  // Outside get_or_create: the registry is a resource of the session too.
  std::call_once(r->registered_, [&] { SaveableRegistry::of(session).add(r); });
  return r;
}

bool IteratorResource::initialized() {
  const Turn turn(*this, CancelToken::none());
  return pipeline_ != nullptr;
}

void IteratorResource::begin(DatasetPtr dataset) {
  auto pipeline = std::make_unique<Pipeline>(std::move(dataset));
  if (restored_) {
    try {
      pipeline->restore(*restored_);
    } catch (const Error& e) {
      throw_error(e.code(), cat("Iterator '", name_, "': ", e.message()));
    }
  }
  pipeline_ = std::move(pipeline);
}

void IteratorResource::initialize(DatasetPtr dataset, const CancelToken& cancel) {
  const Turn turn(*this, cancel);
  begin(std::move(dataset));
}

bool IteratorResource::next(const CancelToken& cancel, const std::function<DatasetPtr()>& otherwise,
                            const std::function<void(Element&)>& use) {
  const Turn turn(*this, cancel);
  if (!pipeline_ && otherwise) begin(otherwise());
  SLUICE_REQUIRE(
      pipeline_ != nullptr, Code::kFailedPrecondition,
      "GetNext() failed because the iterator has not been initialized. Ensure that you have run the "
      "initializer operation for this iterator before getting the next element.");
  const bool more = pipeline_->next(element_, cancel);
  restored_.reset();  // the end counts as well: a later initialisation begins anew
  if (!more) return false;
  use(element_);
  return true;
}

std::vector<std::pair<std::string, Array>> IteratorResource::save() {
  const Turn turn(*this, CancelToken::none());
  std::string state;
  if (pipeline_)
    state = pipeline_->save();
  else if (restored_)
    state = *restored_;
  else
    return {};
  Array a(DType::kUint8, {static_cast<int64_t>(state.size())});
  copy_bytes(a.data(), state.data(), state.size());
  return {{"position", std::move(a)}};
}

void IteratorResource::restore(const std::map<std::string, Array>& state) {
  const auto it = state.find("position");
  if (it == state.end()) return;
  SLUICE_REQUIRE(it->second.dtype() == DType::kUint8, Code::kInvalidArgument, "Iterator '", name_,
                 "': the saved position is ", it->second.dtype(), ", not uint8");
  std::string bytes(static_cast<const char*>(it->second.data()), it->second.bytes());
  const Turn turn(*this, CancelToken::none());
  if (pipeline_) {
    try {
      pipeline_->restore(bytes);
    } catch (const Error& e) {
      throw_error(e.code(), cat("Iterator '", name_, "': ", e.message()));
    }
  }
  restored_ = std::move(bytes);
}

}  // namespace sluice::runtime::data
