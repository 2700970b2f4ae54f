#pragma once
// What an input pipeline is made of. A Dataset is an immutable description (a source, or a transformation of
// other datasets) and may be shared by threads; `iterate` makes an Iterator over it, which belongs to one
// caller at a time. Elements are named arrays. An iterator's position can be saved and put back exactly; an
// iterator that threw goes on where it was: an error costs the element that had it and nothing else, and a
// cancelled wait costs nothing. Which elements come, and in which order, depends on the seed alone, at any
// number of threads (but for a map that was asked to be unordered). After tf.data's Dataset and Iterator.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "graph/shape.h"
#include "runtime/array.h"
#include "runtime/session.h"

namespace sluice::runtime::data {

using graph::Dims;
using graph::DType;
using graph::Shape;

/// One part of every element: its name, type, and what is known of its shape ({} is a scalar, -1 an unknown
/// dimension, Shape() an unknown rank).
struct Component {
  Component() = default;
  Component(std::string n, DType t, std::initializer_list<int64_t> dims)
      : name(std::move(n)), dtype(t), shape(dims) {}
  Component(std::string n, DType t, Shape s) : name(std::move(n)), dtype(t), shape(std::move(s)) {}
  std::string name;
  DType dtype = DType::kFloat;
  Shape shape;
  bool operator==(const Component&) const = default;
};
using ElementSpec = std::vector<Component>;
/// "(image: uint8[28,28], label: int64[])".
std::string spec_string(const ElementSpec& spec);

/// Where an element came from, for messages; null where it came from memory.
struct Origin {
  std::shared_ptr<const std::string> file;  // shared by the elements of one file
  int64_t record = 0;                       // number of the record or line in the file, from 0
  uint64_t offset = 0;                      // of its first byte
  std::string str() const;                  // "record 3 at offset 120 of /data/a.tfrecord", "" for none
};

/// An element under way. Arrays are reused from call to call where nobody else holds them: fill one through
/// `make`, hand one on through `take`, and do not write into arrays that came in.
struct Element {
  std::vector<Array> values;
  Origin origin;

  size_t size() const { return values.size(); }
  Array& operator[](size_t i) { return values[i]; }
  const Array& operator[](size_t i) const { return values[i]; }
  /// Component i as a writable array of this type and shape, its content unspecified; allocates only when the
  /// array that is there cannot serve.
  Array& make(size_t i, DType dtype, const Dims& dims);
  template <class T>
  std::span<T> make(size_t i, const Dims& dims) {
    return make(i, graph::dtype_of<T>, dims).template as<T>();
  }
  /// Component i becomes `from`'s component j; the arrays change places.
  void take(size_t i, Element& from, size_t j) {
    if (values.size() <= i) values.resize(i + 1);
    std::swap(values[i], from.values[j]);
  }
  size_t bytes() const;
};

/// True when nobody else holds the array's bytes, and what others read of them was read before what is
/// written next.
bool exclusive(const Array& a);
/// Makes `slot` a writable array of this type and shape.
void make_writable(Array& slot, DType dtype, const Dims& dims);
/// InvalidArgument naming the component that is not as `spec` says; `who` made the element.
void check_element(const ElementSpec& spec, const Element& element, std::string_view who);
/// The error with the element's origin at the end of its text.
[[noreturn]] void rethrow_at(const Error& error, const Origin& origin);

class Dataset;
class StateWriter;  // runtime/data/state.h
class StateReader;
class CacheStore;

/// What the iterators of one pipeline share across passes: the seed of what was given none, and caches.
struct SharedState {
  uint64_t seed = 0;                           // drawn once a pipeline, saved with the position
  std::map<const Dataset*, uint64_t> ordinal;  // place of each dataset in the pipeline
  std::mutex mutex;                            // guards caches
  std::map<const Dataset*, std::shared_ptr<CacheStore>> caches;
};

struct IterateContext {
  uint64_t epoch = 0;  // which pass this is; 0 is the first
  std::shared_ptr<SharedState> shared;
};

class Iterator {
 public:
  virtual ~Iterator() = default;
  /// The next element; false at the end, and then ever after. Whatever waits asks `cancel` and throws what it
  /// throws.
  virtual bool next(Element& out, const CancelToken& cancel) = 0;
  /// Writes the position, threads of this iterator at rest. Not during next().
  virtual void save(StateWriter& out) = 0;
  /// Goes to a saved position; called on a fresh iterator.
  virtual void restore(StateReader& in) = 0;
};

using DatasetPtr = std::shared_ptr<const Dataset>;

class Dataset {
 public:
  static constexpr int64_t kUnknown = -1, kInfinite = -2;

  Dataset(ElementSpec spec, std::vector<DatasetPtr> inputs)
      : spec_(std::move(spec)), inputs_(std::move(inputs)) {}
  virtual ~Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  const ElementSpec& spec() const { return spec_; }
  const std::vector<DatasetPtr>& inputs() const { return inputs_; }
  virtual std::unique_ptr<Iterator> iterate(const IterateContext& context) const = 0;
  /// This step alone, with what decides the order of elements ("Shuffle(1000,seed=3)"); a position fits a
  /// pipeline of the same steps.
  virtual std::string describe() const = 0;
  virtual int64_t cardinality() const { return kUnknown; }
  /// False when a second pass of the same epoch may differ.
  virtual bool repeatable() const;

  /// Datasets whose elements can be read by number, any thread.
  virtual bool indexed() const { return false; }
  virtual void read(int64_t index, Element& out) const;

 private:
  const ElementSpec spec_;
  const std::vector<DatasetPtr> inputs_;  // shared: pipelines share their beginnings
};

/// The whole pipeline as text, sources first.
std::string pipeline_string(const Dataset& dataset);

/// A pipeline under way: the root iterator with what its parts share. One caller at a time.
class Pipeline {
 public:
  explicit Pipeline(DatasetPtr dataset);
  const Dataset& dataset() const { return *dataset_; }
  bool next(Element& out, const CancelToken& cancel = CancelToken::none());
  /// The position as bytes.
  std::string save();
  /// InvalidArgument when the bytes are damaged or of another pipeline; the position is then as before.
  void restore(std::string_view state);

 private:
  std::unique_ptr<Iterator> fresh(uint64_t seed, std::shared_ptr<SharedState>& shared) const;

  DatasetPtr dataset_;
  std::shared_ptr<SharedState> shared_;  // shared with the iterators
  std::unique_ptr<Iterator> root_;
};

}  // namespace sluice::runtime::data
