#include "dsl/train/resume_state.h"

#include <map>
#include <mutex>

#include "graph/graph.h"
#include "graph/op.h"
#include "runtime/resource.h"
#include "runtime/saveable.h"

namespace sluice::dsl::train {

using runtime::Array;
using runtime::RandomStream;
using runtime::SaveableRegistry;

namespace {

const std::string kNodes = std::string(kResumePrefix) + "random/nodes";
const std::string kStreams = std::string(kResumePrefix) + "random/streams";
const std::string kState = std::string(kResumePrefix) + "state/";
constexpr char kSeparator = '|';
constexpr int64_t kStreamWords = 4;  // seed, seed2, counter low and high

std::vector<graph::Node*> random_nodes(const graph::Graph& g) {
  std::vector<graph::Node*> out;
  for (graph::Node* n : g.nodes())
    if (n->has(graph::kRandom)) out.push_back(n);
  return out;
}

}  // namespace

std::vector<std::pair<std::string, Array>> collect_resume_state(runtime::Session& session) {
  std::map<std::string, Array> out;
  runtime::ResourceManager& resources = session.resources();
  const std::vector<graph::Node*> nodes = random_nodes(session.graph());
  std::vector<std::string> names;
  std::vector<uint64_t> words;
  for (const graph::Node* n : nodes) {
    const std::shared_ptr<RandomStream> s = resources.stream(n->name());
    std::lock_guard lock(s->mutex);
    if (!s->seeded) continue;
    names.push_back(n->name());
    words.insert(words.end(), {s->key, s->key2, s->counter[0], s->counter[1]});
  }
  if (!nodes.empty()) {
    const auto count = static_cast<int64_t>(names.size());
    out[kNodes] = Array::strings({count}, std::move(names));
    out[kStreams] = Array::from<uint64_t>({count, kStreamWords}, std::span<const uint64_t>(words));
  }
  for (auto& [key, state] : SaveableRegistry::of(resources).save())
    for (auto& [name, value] : state) out[cat(kState, key, kSeparator, name)] = std::move(value);
  return {out.begin(), out.end()};
}

std::vector<std::pair<std::string, Array>> read_resume_state(const runtime::io::BundleReader& from) {
  std::vector<std::pair<std::string, Array>> out;
  for (auto it = from.entries().lower_bound(kResumePrefix);
       it != from.entries().end() && it->first.starts_with(kResumePrefix); ++it) {
    Array value = from.read(it->first);
    auto damaged = [&](const char* why) {
      throw_error(Code::kDataLoss, cat(from.prefix(), ": '", it->first, "' ", why));
    };
    if (it->first == kNodes || it->first == kStreams) {
      const bool names = it->first == kNodes;
      const auto* other = from.find(names ? kStreams : kNodes);
      if (value.dtype() != (names ? graph::DType::kString : graph::DType::kUint64) ||
          value.rank() != (names ? 1 : 2) || (!names && value.dims()[1] != kStreamWords) || !other ||
          other->dims.empty() || other->dims[0] != value.dims()[0])
        damaged("does not hold the states of random ops");
    } else if (it->first.starts_with(kState) && it->first.find(kSeparator) == std::string::npos) {
      damaged("names no object's state");
    }
    out.emplace_back(it->first, std::move(value));
  }
  return out;
}

void apply_resume_state(runtime::Session& session, const std::vector<std::pair<std::string, Array>>& state) {
  runtime::ResourceManager& resources = session.resources();
  std::map<std::string, std::map<std::string, Array>> objects;
  Array nodes, streams;
  for (const auto& [name, value] : state) {
    if (name == kNodes) {
      nodes = value;
    } else if (name == kStreams) {
      streams = value;
    } else if (name.starts_with(kState)) {
      const size_t bar = name.rfind(kSeparator);
      objects[name.substr(kState.size(), bar - kState.size())][name.substr(bar + 1)] = value;
    }
  }
  // First what may refuse; the streams cannot.
  if (!objects.empty()) SaveableRegistry::of(resources).restore(std::move(objects));
  if (nodes && streams) {
    std::map<std::string, std::span<const uint64_t>> words;
    for (size_t i = 0; i < nodes.string_values().size(); ++i)
      words[nodes.string_values()[i]] = streams.as<uint64_t>().subspan(i * kStreamWords, kStreamWords);
    // Ops that had not drawn when the checkpoint was written start again.
    for (const graph::Node* n : random_nodes(session.graph())) words.try_emplace(n->name());
    for (const auto& [name, w] : words) {
      const std::shared_ptr<RandomStream> s = resources.stream(name);
      std::lock_guard lock(s->mutex);
      s->seeded = !w.empty();
      if (w.empty()) continue;
      s->key = w[0], s->key2 = w[1];
      s->counter[0] = w[2], s->counter[1] = w[3];
    }
  }
}

}  // namespace sluice::dsl::train
