#pragma once
// Scaffold: the pieces a training session is made from; what the author leaves out comes from the graph's
// collections or is built by TensorFlow's rule (graph-and-training §6.1). Share one scaffold between the
// session creator and the hooks. The builder's thread.
//
//   auto scaffold = std::make_shared<Scaffold>(ScaffoldOptions{.init_fn = warm_start});
//   train(train_op, "logs", {.scaffold = scaffold});

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "dsl/tensor.h"
#include "dsl/train/saver.h"
#include "runtime/session.h"

namespace sluice::dsl::train {

class Scaffold;

/// Runs after init_op when no checkpoint was restored: a function of (session) or of (scaffold, session).
class ScaffoldInitFn {
 public:
  ScaffoldInitFn() = default;
  template <class F, class = std::enable_if_t<!std::is_same_v<std::decay_t<F>, ScaffoldInitFn>>>
  ScaffoldInitFn(F f) {
    if constexpr (kMayBeEmpty<F>) {
      if (!f) return;  // an empty function is none
    }
    if constexpr (std::is_invocable_v<F&, Scaffold&, runtime::Session&>) {
      fn_ = std::move(f);
    } else {
      static_assert(std::is_invocable_v<F&, runtime::Session&>,
                    "init_fn takes (Session&) or (Scaffold&, Session&)");
      fn_ = [g = std::move(f)](Scaffold&, runtime::Session& s) mutable { g(s); };
    }
  }
  explicit operator bool() const { return static_cast<bool>(fn_); }
  void operator()(Scaffold& scaffold, runtime::Session& session) const { fn_(scaffold, session); }

 private:
  template <class F>
  static constexpr bool kMayBeEmpty =
      std::is_same_v<F, std::function<void(runtime::Session&)>> ||
      std::is_same_v<F, std::function<void(Scaffold&, runtime::Session&)>> || std::is_pointer_v<F>;
  std::function<void(Scaffold&, runtime::Session&)> fn_;
};

struct ScaffoldOptions {
  Node* init_op = nullptr;
  std::vector<runtime::Feed> init_feed_dict = {};
  ScaffoldInitFn init_fn = {};
  Tensor ready_op = {};
  Tensor ready_for_local_init_op = {};
  Node* local_init_op = nullptr;
  Tensor summary_op = {};
  std::shared_ptr<Saver> saver = nullptr;                        // shared with the hooks that save
  std::shared_ptr<const Scaffold> copy_from_scaffold = nullptr;  // gives what is left out here
};

class Scaffold {
 public:
  explicit Scaffold(const ScaffoldOptions& o = {});

  /// Fills what is left out, and finalizes the graph; again is a no-op. FailedPrecondition "More than one
  /// item in the collection …" when a collection leaves the choice open.
  void finalize(Graph& g);

  Node* init_op() const { return o_.init_op; }
  const std::vector<runtime::Feed>& init_feed_dict() const { return o_.init_feed_dict; }
  const ScaffoldInitFn& init_fn() const { return o_.init_fn; }
  Tensor ready_op() const { return o_.ready_op; }
  Tensor ready_for_local_init_op() const { return o_.ready_for_local_init_op; }
  Node* local_init_op() const { return o_.local_init_op; }
  /// Empty when the graph has no summaries.
  Tensor summary_op() const { return o_.summary_op; }
  const std::shared_ptr<Saver>& saver() const { return o_.saver; }

  /// TensorFlow's default local init: local variables and tables.
  static Node& default_local_init_op(Graph& g);

 private:
  ScaffoldOptions o_;
};

/// The graph's SAVERS: those made by scaffolds or added by the author. Live list.
std::vector<std::shared_ptr<Saver>>& savers(Graph& g);

}  // namespace sluice::dsl::train
