#include "graph/collections.h"

#include <algorithm>
#include <regex>

#include "graph/graph.h"

namespace sluice::graph {

std::string item_name(const CollectionItem& item) {
  if (const auto* e = std::get_if<GraphElement>(&item)) {
    if (!e->node) return {};
    return e->index < 0 ? e->node->name() : cat(e->node->name(), ":", e->index);
  }
  if (const auto* v = std::get_if<std::shared_ptr<VariableInfo>>(&item)) {
    return *v && (*v)->node ? (*v)->node->name() + ":0" : std::string();
  }
  return {};
}

bool same_item(const CollectionItem& a, const CollectionItem& b) { return a == b; }

void Collections::add(std::string_view key, CollectionItem item) { ref(key).push_back(std::move(item)); }

void Collections::add_unique(std::string_view key, CollectionItem item) {
  auto& list = ref(key);
  if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(std::move(item));
}

std::vector<CollectionItem> Collections::get(std::string_view key, std::string_view scope) const {
  const auto it = lists_.find(key);
  if (it == lists_.end()) return {};
  if (scope.empty()) return it->second;
  const std::regex pattern{std::string(scope)};
  std::vector<CollectionItem> out;
  for (const CollectionItem& item : it->second) {
    const std::string name = item_name(item);
    if (!name.empty() && std::regex_search(name, pattern, std::regex_constants::match_continuous))
      out.push_back(item);
  }
  return out;
}

std::vector<CollectionItem>& Collections::ref(std::string_view key) {
  const auto it = lists_.find(key);
  return it != lists_.end() ? it->second : lists_[std::string(key)];
}

void Collections::clear(std::string_view key) {
  if (const auto it = lists_.find(key); it != lists_.end()) it->second.clear();
}

std::vector<std::string> Collections::keys() const {
  std::vector<std::string> out;
  for (const auto& [key, list] : lists_)
    if (!list.empty()) out.push_back(key);
  return out;
}

bool Collections::empty(std::string_view key) const {
  const auto it = lists_.find(key);
  return it == lists_.end() || it->second.empty();
}

std::vector<std::shared_ptr<VariableInfo>> Collections::variables(std::string_view key,
                                                                  std::string_view scope) const {
  std::vector<std::shared_ptr<VariableInfo>> out;
  for (const CollectionItem& item : get(key, scope))
    if (const auto* v = std::get_if<std::shared_ptr<VariableInfo>>(&item)) out.push_back(*v);
  return out;
}

std::vector<GraphElement> Collections::elements(std::string_view key, std::string_view scope) const {
  std::vector<GraphElement> out;
  for (const CollectionItem& item : get(key, scope))
    if (const auto* e = std::get_if<GraphElement>(&item)) out.push_back(*e);
  return out;
}

}  // namespace sluice::graph
