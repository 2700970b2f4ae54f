#include "dsl/call.h"

namespace sluice::dsl {

Output Call::constant(Literal value, const std::string& name) const {
  DType dtype = value.dtype();
  return inner("Const", {}, {{"dtype", dtype}, {"value", std::move(value)}}, name).output();
}

Output Call::scalar(DType dtype, double value, const std::string& name) const {
  return constant(Literal::scalar<double>(value).cast(dtype), name);
}

Output Call::i32(int64_t value, const std::string& name) const {
  return constant(Literal::scalar<int32_t>(static_cast<int32_t>(value)), name);
}

Output Call::i32s(const std::vector<int64_t>& values, const std::string& name) const {
  std::vector<int32_t> v(values.begin(), values.end());
  return constant(Literal::vector<int32_t>(std::span<const int32_t>(v)), name);
}

Node& Call::inner(const char* op, std::vector<Output> inputs, AttrMap attrs, const std::string& name) const {
  return g_.add(
      {.op = op, .name = name, .inputs = std::move(inputs), .attrs = std::move(attrs), .loc = loc_});
}

Node& Call::make(const char* op, std::vector<Output> inputs, AttrMap attrs) const {
  return inner(op, std::move(inputs), std::move(attrs), scope_.scope());
}

}  // namespace sluice::dsl
