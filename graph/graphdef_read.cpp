// GraphDef → Graph. Everything that can be checked from the message alone is checked before the first node is
// made, in this order: versions, names, ops, inputs, arity and types, order, loop frames. So one error names
// node and rule, and a graph whose import failed there is unchanged.

#include <algorithm>
#include <charconv>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "graph/graphdef_internal.h"
#include "graph/loop_frames.h"
#include "graph/proto/graph.pb.h"
#include "graph/scopes.h"
#include "graph/support/log.h"

namespace sluice::graph::detail {
namespace {

// Attrs of later versions that only label things, whatever their value.
constexpr std::string_view kLabels[] = {"debug_name"};

struct InputRef {
  std::string_view name;
  int index = 0;    // output index; -1: control
  int source = -1;  // index of the node in the file, or
  Output mapped;    // the output it was replaced by
};

// A node of the file, checked and ready to be made.
struct Draft {
  const OpDef* def = nullptr;
  AttrMap attrs;
  std::vector<InputRef> inputs;  // data first
  int data_inputs = 0;
  std::vector<DType> input_types, output_types;
};

class Reader {
 public:
  Reader(Graph& graph, proto::GraphDef& in, const ImportOptions& options,
         const ProducerDefault& producer_default)
      : graph_(graph), in_(in), options_(options), producer_default_(producer_default) {
    context_.source = options.source;
    context_.repeat_bytes_left = options.max_repeat_bytes;
  }

  std::string run() {
    check_versions();
    open_scope();
    check_names();
    check_ops();
    drafts_.resize(static_cast<size_t>(in_.node_size()));
    for (int i = 0; i < in_.node_size(); ++i) read_inputs(i);
    check_input_map();
    check_repetition();
    for (int i = 0; i < in_.node_size(); ++i) read_attrs(i);
    for (int i = 0; i < in_.node_size(); ++i) check_types(i);
    const std::vector<int> order = sort();
    check_frames(order);
    made_.resize(drafts_.size());
    for (int i : order) make(i);
    connect_back_edges();
    merge_library();
    merge_versions();
    return scope_;
  }

 private:
  const proto::NodeDef& node(int i) const { return in_.node(i); }
  Draft& draft(int i) { return drafts_[static_cast<size_t>(i)]; }
  void at(int i) {
    context_.node = node(i).name();
    context_.attr.clear();
  }
  [[noreturn]] void fail(const std::string& rule, Code code = Code::kInvalidArgument) {
    context_.fail(code, rule);
  }

  void check_versions() {
    const auto& v = in_.versions();
    if (v.min_consumer() > kConsumer)
      fail(cat("GraphDef min consumer version ", v.min_consumer(), " above current version ", kConsumer,
               "; the file needs a newer program"));
    if (v.producer() < 0 || v.min_consumer() < 0) fail("GraphDef versions must not be negative");
    if (v.min_consumer() > v.producer())
      fail(cat("GraphDef producer version ", v.producer(), " below its own min consumer version ",
               v.min_consumer()));
    for (int bad : v.bad_consumers())
      if (bad == kConsumer) fail(cat("GraphDef disallows consumer version ", kConsumer));
  }

  void open_scope() {
    if (options_.prefix.empty()) return;
    std::string prefix = options_.prefix;
    const bool exact = prefix.back() == '/';
    if (exact) prefix.pop_back();
    SLUICE_REQUIRE(is_valid_scope_name(prefix, false), Code::kInvalidArgument, "'", prefix,
                   "' is not a valid scope name");
    scope_ = (exact ? prefix : graph_.unique_name(prefix)) + "/";
  }

  void check_names() {
    index_.reserve(static_cast<size_t>(in_.node_size()));
    for (int i = 0; i < in_.node_size(); ++i) {
      const std::string& name = node(i).name();
      at(i);
      if (name.empty()) fail(cat("node number ", i, " (op '", node(i).op(), "') has no name"));
      if (!is_valid_op_name(name)) fail(cat("'", name, "' is not a valid node name"));
      if (!index_.emplace(name, i).second) fail(cat("Node '", name, "' is not unique"));
      if (graph_.find(scope_ + name))
        fail(cat("Node name '", scope_ + name, "' already exists in the Graph"));
    }
    context_.node.clear();
  }

  void check_ops() {
    std::unordered_set<std::string_view> functions;
    for (const auto& f : in_.library().function()) functions.insert(f.signature().name());
    std::string missing, called;
    std::string_view first;
    std::unordered_set<std::string_view> told;
    for (const auto& n : in_.node()) {
      if (graph_.ops().find(n.op()) || !told.insert(n.op()).second) continue;
      if (first.empty()) first = n.name();
      std::string& list = functions.contains(n.op()) ? called : missing;
      list += cat(list.empty() ? "" : ", ", "'", n.op(), "' (node '", n.name(), "')");
    }
    if (first.empty()) return;
    const std::string source = context_.source.empty() ? "" : context_.source + ": ";
    if (missing.empty())
      throw Error(Code::kUnimplemented,
                  cat(source, "calls of the file's own functions cannot be loaded: ", called),
                  std::string(first));
    throw Error(Code::kNotFound,
                cat(source, "Op type not registered ", missing,
                    ". Make sure the op is registered in the OpRegistry that the Graph was made with."),
                std::string(first));
  }

  void read_inputs(int i) {
    at(i);
    Draft& d = draft(i);
    d.def = &graph_.ops().get(node(i).op());
    bool control_seen = false;
    d.inputs.reserve(static_cast<size_t>(node(i).input_size()));
    for (const std::string& text : node(i).input()) {
      InputRef ref = parse_input(text);
      if (ref.index < 0)
        control_seen = true;
      else if (control_seen)
        fail(cat("All control inputs must follow all data inputs; '", text, "' comes after one"));
      else
        ++d.data_inputs;
      const auto mapped = find_mapped(ref);
      if (mapped) {
        ref.mapped = *mapped;
      } else {
        const auto it = index_.find(ref.name);
        if (it == index_.end()) fail(cat("Unknown input node '", text, "'"));
        ref.source = it->second;
      }
      d.inputs.push_back(std::move(ref));
    }
  }

  InputRef parse_input(const std::string& text) {
    InputRef ref{.name = text};
    if (text.starts_with('^')) {
      ref.name.remove_prefix(1);
      ref.index = -1;
    } else if (const size_t colon = ref.name.rfind(':'); colon != std::string_view::npos) {
      const std::string_view digits = ref.name.substr(colon + 1);
      const auto r = std::from_chars(digits.data(), digits.data() + digits.size(), ref.index);
      if (r.ec != std::errc() || r.ptr != digits.data() + digits.size() || ref.index < 0 || digits.empty())
        fail(cat("input '", text, "' is not of the form 'node', 'node:index' or '^node'"));
      ref.name = ref.name.substr(0, colon);
    }
    if (!is_valid_op_name(ref.name))
      fail(cat("input '", text, "' is not of the form 'node', 'node:index' or '^node'"));
    return ref;
  }

  std::optional<Output> find_mapped(const InputRef& ref) {
    if (options_.input_map.empty()) return std::nullopt;
    auto look = [&](const std::string& key) -> std::optional<Output> {
      const auto it = options_.input_map.find(key);
      if (it == options_.input_map.end()) return std::nullopt;
      used_keys_.insert(it->first);
      SLUICE_REQUIRE(it->second, Code::kInvalidArgument, "input_map['", key, "'] is no output");
      SLUICE_REQUIRE(&it->second.graph() == &graph_, Code::kInvalidArgument, "input_map['", key,
                     "'] is not an element of this graph.");
      return it->second;
    };
    if (ref.index < 0) return look(cat("^", ref.name));
    auto found = look(cat(ref.name, ":", ref.index));
    return found || ref.index > 0 ? found : look(std::string(ref.name));
  }

  void check_input_map() {
    context_.node.clear();
    std::string unused;
    for (const auto& [key, value] : options_.input_map)
      if (!used_keys_.contains(key)) unused += cat(unused.empty() ? "" : ", ", key);
    if (!unused.empty())
      fail(cat("Attempted to map inputs that were not found in graph_def: [", unused, "]"));
  }

  // Before the first constant is read: what all of them would take beyond their own bytes.
  void check_repetition() {
    uint64_t left = context_.repeat_bytes_left;
    for (int i = 0; i < in_.node_size(); ++i) {
      for (const auto& [name, value] : node(i).attr()) {
        uint64_t bytes = 0;
        if (value.has_tensor()) bytes = repeat_bytes(value.tensor());
        for (const auto& t : value.list().tensor()) {
          const uint64_t more = repeat_bytes(t);
          bytes = more > UINT64_MAX - bytes ? UINT64_MAX : bytes + more;
        }
        if (bytes <= left) {
          left -= bytes;
          continue;
        }
        if (bytes == UINT64_MAX) return;  // a broken shape: reading that constant says how
        at(i);
        context_.attr = name;
        fail(cat("the constant repeats one value over ", bytes,
                 " bytes; all such repetition in a file together must stay under 2 GiB"));
      }
    }
  }

  // Attrs that a newer producer added and left at their defaults say nothing; any other unknown attr is
  // refused.
  bool droppable(const Draft& d, const std::string& name, const proto::AttrValue& value,
                 const AttrValue& read) {
    if (producer_default_) {
      if (const proto::AttrValue* standard = producer_default_(d.def->name, name)) {
        std::string a, b;
        a = serialize(*standard, FileFormat::kBinary), b = serialize(value, FileFormat::kBinary);
        if (a == b) return true;
      }
    }
    if (in_.versions().producer() <= kConsumer) return false;
    if (std::find(std::begin(kLabels), std::end(kLabels), name) != std::end(kLabels)) return true;
    if (const bool* b = read.get_if<bool>()) return !*b;
    if (const int64_t* i = read.get_if<int64_t>()) return *i == 0;
    if (const std::string* s = read.get_if<std::string>()) return s->empty();
    return read.get_if<EmptyList>() != nullptr;
  }

  void read_attrs(int i) {
    at(i);
    Draft& d = draft(i);
    for (const auto& [name, value] : in_.node(i).attr()) {
      context_.attr = name;
      if (name.empty()) fail("an attr has no name");
      AttrValue read = attr_from_proto(value, context_);
      if (!name.starts_with('_') && !d.def->find_attr(name) && !d.def->ignores_attr(name, read)) {
        if (!droppable(d, name, value, read)) {
          context_.attr.clear();
          fail(cat("NodeDef mentions attr '", name, "' not in Op<name=", d.def->name,
                   ">. (Check whether your GraphDef-interpreting binary is up to date with your "
                   "GraphDef-generating "
                   "binary.)"));
        }
        log_debug("node '", node(i).name(), "': attr '", name,
                  "' at its default is not known here and is dropped");
        continue;
      }
      d.attrs.emplace(name, std::move(read));
    }
    context_.attr.clear();
    for (const AttrSpec& spec : d.def->attr_specs) {
      if (d.attrs.contains(spec.name)) continue;
      if (!spec.default_value.has_value())
        fail(cat("NodeDef missing attr '", spec.name, "' from Op<name=", d.def->name, ">"));
      d.attrs.emplace(spec.name, spec.default_value);
    }
    check_constant(d);
    d.input_types = types_of(d, d.def->input_args, d.data_inputs, "inputs");
    const auto most_outputs = static_cast<int64_t>(d.def->output_args.size()) + context_.extra_outputs_left;
    d.output_types = types_of(d, d.def->output_args, most_outputs, "outputs");
    context_.extra_outputs_left -=
        std::max<int64_t>(0, static_cast<int64_t>(d.output_types.size()) -
                                 static_cast<int64_t>(d.def->output_args.size()) - list_lengths(d));
    if (static_cast<int>(d.input_types.size()) != d.data_inputs) fail_arity(d);
    in_.mutable_node(i)->clear_attr();  // constants are held once
  }

  // A constant's value must have the type that the node states.
  void check_constant(const Draft& d) {
    const auto value = d.attrs.find("value"), dtype = d.attrs.find("dtype");
    if (value == d.attrs.end() || dtype == d.attrs.end()) return;
    const Literal* literal = value->second.get_if<Literal>();
    const DType* type = dtype->second.get_if<DType>();
    if (literal && type && literal->dtype() != *type)
      fail(cat("Inconsistent type: attr 'dtype' is ", *type, ", the value is ", literal->dtype()));
  }

  static int64_t list_lengths(const Draft& d) {
    int64_t n = 0;
    for (const auto& [name, value] : d.attrs)
      if (const auto* list = value.get_if<std::vector<DType>>()) n += static_cast<int64_t>(list->size());
    return n;
  }

  template <class T>
  const T& bound(const Draft& d, const std::string& attr) {
    const T* v = d.attrs.find(attr)->second.get_if<T>();
    if (!v)
      fail(cat("AttrValue had value with type '", d.attrs.find(attr)->second.kind(), "' when '",
               d.def->find_attr(attr)->kind, "' expected for attr '", attr, "' of Op<name=", d.def->name,
               ">"));
    return *v;
  }

  // The arguments' types, flattened; stops (without allocating) past `most`.
  std::vector<DType> types_of(const Draft& d, const std::vector<ArgSpec>& args, int64_t most,
                              const char* what) {
    std::vector<DType> out;
    for (const ArgSpec& arg : args) {
      if (!arg.type_list_attr.empty()) {
        if (d.attrs.find(arg.type_list_attr)->second.get_if<EmptyList>()) continue;
        for (DType t : bound<std::vector<DType>>(d, arg.type_list_attr))
          out.push_back(arg.is_ref ? make_ref(t) : t);
        continue;
      }
      const DType base = arg.type != DType::kInvalid ? arg.type : bound<DType>(d, arg.type_attr);
      const int64_t count = arg.number_attr.empty() ? 1 : bound<int64_t>(d, arg.number_attr);
      if (count < 0)
        fail(cat("Value for attr '", arg.number_attr, "' of ", count, " must be at least minimum 0"));
      if (!arg.number_attr.empty() && count > most - static_cast<int64_t>(out.size()))
        fail(cat("attr '", arg.number_attr, "' of Op<name=", d.def->name, "> asks for ", count, " ", what,
                 ", more than ", what[0] == 'i' ? "the node has (" : "a file may declare (", most, ")"));
      out.insert(out.end(), static_cast<size_t>(count), arg.is_ref ? make_ref(base) : base);
    }
    return out;
  }

  [[noreturn]] void fail_arity(const Draft& d) {
    std::string wanted;
    for (size_t k = 0; k < d.input_types.size(); ++k) {
      if (k == 16) {
        wanted += ", …";
        break;
      }
      wanted += cat(k ? ", " : "", d.input_types[k]);
    }
    fail(cat("NodeDef expected inputs '", wanted, "' (", d.input_types.size(), ") do not match ",
             d.data_inputs, " inputs specified; Op<name=", d.def->name, ">"));
  }

  void check_types(int i) {
    at(i);
    Draft& d = draft(i);
    for (int k = 0; k < static_cast<int>(d.inputs.size()); ++k) {
      const InputRef& ref = d.inputs[static_cast<size_t>(k)];
      if (ref.index < 0) continue;
      DType given = DType::kInvalid;
      std::string from;
      if (ref.source < 0) {
        given = ref.mapped.node->output_type(ref.mapped.index);
        from = ref.mapped.name();
      } else {
        const Draft& source = draft(ref.source);
        const int outputs = static_cast<int>(source.output_types.size());
        if (ref.index >= outputs)
          fail(cat("Connecting to invalid output ", ref.index, " of source node ", ref.name, " which has ",
                   outputs, " outputs."));
        given = source.output_types[static_cast<size_t>(ref.index)];
        from = cat(ref.name, ":", ref.index);
      }
      const DType wanted = d.input_types[static_cast<size_t>(k)];
      if (base_dtype(given) != base_dtype(wanted) || (is_ref(wanted) && !is_ref(given)))
        fail(cat("Input ", k, " of node ", node(i).name(), " was passed ", given, " from ", from,
                 " incompatible with expected ", wanted, "."));
    }
    context_.node.clear();
  }

  bool is_back_edge(const InputRef& ref, const Draft& to) {
    return ref.source >= 0 && ref.index >= 0 && to.def->has(kLoopMerge) &&
           draft(ref.source).def->has(kLoopBack);
  }

  // File order wherever it can be kept: the earliest node whose inputs are all there comes next.
  std::vector<int> sort() {
    const size_t n = drafts_.size();
    std::vector<int> pending(n, 0);
    std::vector<std::vector<int>> users(n);
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    for (size_t i = 0; i < n; ++i) {
      for (const InputRef& ref : drafts_[i].inputs) {
        if (ref.source < 0 || is_back_edge(ref, drafts_[i])) continue;
        ++pending[i];
        users[static_cast<size_t>(ref.source)].push_back(static_cast<int>(i));
      }
      if (pending[i] == 0) ready.push(static_cast<int>(i));
    }
    std::vector<int> order;
    order.reserve(n);
    while (!ready.empty()) {
      const int i = ready.top();
      ready.pop();
      order.push_back(i);
      for (int u : users[static_cast<size_t>(i)])
        if (--pending[static_cast<size_t>(u)] == 0) ready.push(u);
    }
    if (order.size() != n) fail_cycle(pending, n - order.size());
    return order;
  }

  void check_frames(const std::vector<int>& order) {
    const auto loops = [](const Draft& d) { return d.def->has(kControlFlow); };
    if (std::none_of(drafts_.begin(), drafts_.end(), loops)) return;
    std::vector<FrameNode> nodes(drafts_.size());
    for (size_t i = 0; i < drafts_.size(); ++i) {
      const Draft& d = drafts_[i];
      nodes[i].name = node(static_cast<int>(i)).name();
      nodes[i].role = loop_role(*d.def);
      const auto frame = d.attrs.find("frame_name");
      if (nodes[i].role == LoopRole::kEnters && frame != d.attrs.end())
        if (const auto* name = frame->second.get_if<std::string>()) nodes[i].frame_name = *name;
      for (const InputRef& ref : d.inputs)
        if (ref.source >= 0 && !is_back_edge(ref, d)) nodes[i].inputs.push_back(ref.source);
    }
    const auto fault = find_frame_fault(nodes, order);
    if (!fault) return;
    at(fault->node);
    fail(fault->rule);
  }

  // Walking backwards through unplaced nodes, a cycle is entered after at most n steps.
  [[noreturn]] void fail_cycle(const std::vector<int>& pending, size_t unplaced) {
    size_t i = 0;
    while (pending[i] == 0) ++i;
    for (size_t steps = 0; steps < drafts_.size(); ++steps) {
      for (const InputRef& ref : drafts_[i].inputs) {
        if (ref.source < 0 || pending[static_cast<size_t>(ref.source)] == 0 || is_back_edge(ref, drafts_[i]))
          continue;
        i = static_cast<size_t>(ref.source);
        break;
      }
    }
    at(static_cast<int>(i));
    fail(cat("the node is on a cycle; ", unplaced,
             " nodes in or behind a cycle cannot be placed (only NextIteration "
             "→ Merge may close a loop)"));
  }

  void make(int i) {
    at(i);
    Draft& d = draft(i);
    ImportedNode n{.name = scope_ + node(i).name(), .op = node(i).op(), .device = node(i).device()};
    for (const InputRef& ref : d.inputs) {
      Node* source = ref.source < 0 ? ref.mapped.node : made_[static_cast<size_t>(ref.source)];
      if (ref.index < 0)
        n.control_inputs.push_back(source);
      else if (!source)
        n.inputs.push_back({});  // a back edge
      else
        n.inputs.push_back(ref.source < 0 ? ref.mapped : Output{source, ref.index});
    }
    const auto shapes = d.attrs.find("_output_shapes");
    std::vector<Shape> stated;
    if (shapes != d.attrs.end()) {
      if (const auto* list = shapes->second.get_if<std::vector<Shape>>()) stated = *list;
      d.attrs.erase(shapes);
    }
    if (!scope_.empty()) prefix_class(d.attrs);
    n.attrs = std::move(d.attrs);
    Node* made = nullptr;
    try {
      made = &graph_.import_node(std::move(n), in_.versions().producer());
      if (stated.size() == static_cast<size_t>(made->num_outputs()))
        for (int k = 0; k < made->num_outputs(); ++k)
          graph_.set_shape(made->output(k), stated[static_cast<size_t>(k)]);
    } catch (const Error& e) {
      std::string text = e.message();
      if (text.find(cat("'", context_.node, "'")) == std::string::npos)
        text = cat("node '", context_.node, "': ", text);
      throw Error(e.code(), context_.source.empty() ? text : cat(context_.source, ": ", text),
                  e.node().empty() ? context_.node : e.node(), e.loc());
    }
    made_[static_cast<size_t>(i)] = made;
  }

  void prefix_class(AttrMap& attrs) const {
    const auto it = attrs.find("_class");
    if (it == attrs.end()) return;
    const auto* list = it->second.get_if<std::vector<std::string>>();
    if (!list) return;
    std::vector<std::string> out = *list;
    for (std::string& s : out)
      if (s.starts_with("loc:@")) s.insert(5, scope_);
    it->second = std::move(out);
  }

  void connect_back_edges() {
    for (size_t i = 0; i < drafts_.size(); ++i) {
      bool changed = false;
      for (int k = 0; k < drafts_[i].data_inputs; ++k) {
        const InputRef& ref = drafts_[i].inputs[static_cast<size_t>(k)];
        if (!is_back_edge(ref, drafts_[i]) || made_[i]->input(k)) continue;
        graph_.set_input(*made_[i], k, Output{made_[static_cast<size_t>(ref.source)], ref.index});
        changed = true;
      }
      if (changed) graph_.infer_shapes(*made_[i]);
    }
  }

  void merge_library() {
    if (!in_.has_library()) return;
    proto::FunctionDefLibrary all;
    std::string why;
    SLUICE_CHECK(parse(graph_.function_library(), false, &all, &why), "function library: ", why);
    std::unordered_map<std::string, const proto::FunctionDef*> known;
    for (const auto& f : all.function()) known.emplace(f.signature().name(), &f);
    proto::FunctionDefLibrary fresh;
    for (const auto& f : in_.library().function()) {
      const auto it = known.find(f.signature().name());
      if (it == known.end()) {
        *fresh.add_function() = f;
      } else if (serialize(*it->second, FileFormat::kBinary) != serialize(f, FileFormat::kBinary)) {
        context_.node.clear();
        fail(cat("Cannot add function '", f.signature().name(),
                 "' because a different function with the same name already exists."));
      }
    }
    for (const auto& g : in_.library().gradient()) {
      const bool have = std::any_of(all.gradient().begin(), all.gradient().end(),
                                    [&](const auto& o) { return o.function_name() == g.function_name(); });
      if (!have) *fresh.add_gradient() = g;
    }
    all.MergeFrom(fresh);
    graph_.function_library() = serialize(all, FileFormat::kBinary);
  }

  // An import into an empty graph takes the file's versions; otherwise both must be satisfied.
  void merge_versions() {
    if (!in_.has_versions()) return;
    Versions& have = graph_.versions();
    const auto& v = in_.versions();
    std::vector<int> bad(v.bad_consumers().begin(), v.bad_consumers().end());
    if (graph_.num_nodes() == in_.node_size()) {
      have = {.producer = v.producer(), .min_consumer = v.min_consumer(), .bad_consumers = std::move(bad)};
      return;
    }
    have.producer = std::min(have.producer, v.producer());
    have.min_consumer = std::max(have.min_consumer, v.min_consumer());
    for (int b : bad)
      if (std::find(have.bad_consumers.begin(), have.bad_consumers.end(), b) == have.bad_consumers.end())
        have.bad_consumers.push_back(b);
  }

  Graph& graph_;
  proto::GraphDef& in_;
  const ImportOptions& options_;
  const ProducerDefault& producer_default_;
  ReadContext context_;
  std::string scope_;
  std::unordered_map<std::string_view, int> index_;  // file names → position
  std::vector<Draft> drafts_;
  std::vector<Node*> made_;
  std::unordered_set<std::string> used_keys_;
};

}  // namespace

std::string graph_from_proto(Graph& graph, proto::GraphDef& in, const ImportOptions& options,
                             const ProducerDefault& producer_default) {
  SLUICE_REQUIRE(!graph.finalized(), Code::kFailedPrecondition, "Graph is finalized and cannot be modified.");
  return Reader(graph, in, options, producer_default).run();
}

}  // namespace sluice::graph::detail
