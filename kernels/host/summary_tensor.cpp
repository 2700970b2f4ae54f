// TensorSummary: whole tensors in Summary messages (graph-and-training §7.3).
//   Value { tag = 1, node_name = 7, tensor = 8 TensorProto, metadata = 9 SummaryMetadata }
// The first form knows only its node's name; the second has a tag and the metadata that picks a plugin.

#include "kernels/host/input_array.h"
#include "kernels/reference/register.h"
#include "runtime/io/events.h"
#include "runtime/io/wire.h"

namespace sluice::kernels {
namespace {

using runtime::io::WireReader;
using runtime::io::WireWriter;

BoundFn tensor_v1(const KernelSpec& spec) {
  return [node = spec.node ? spec.node->name() : spec.op](KernelRun& r) {
    WireWriter value, summary;
    value.bytes_field(7, node);
    value.bytes_field(8, runtime::io::tensor_to_bytes(input_array(r, 0)));
    summary.bytes_field(1, value.str());
    put_string(r, 0, summary.take());
  };
}

void tensor_v2(KernelRun& r) {
  const std::string &tag = scalar_string(r, 0), &metadata = scalar_string(r, 2);
  WireReader check(metadata);
  for (runtime::io::WireField f; check.next(&f);) {
  }
  SLUICE_REQUIRE(check.sound(), Code::kInvalidArgument,
                 "serialized_summary_metadata is no SummaryMetadata message");
  WireWriter value, summary;
  value.bytes_field(1, tag);
  value.bytes_field(8, runtime::io::tensor_to_bytes(input_array(r, 1)));
  value.bytes_field(9, metadata);
  summary.bytes_field(1, value.str());
  put_string(r, 0, summary.take());
}

}  // namespace

void register_host_summary_tensor(KernelRegistry& r) {
  add_bound(r, "TensorSummary", tensor_v1);
  add(r, "TensorSummaryV2", tensor_v2);
}

}  // namespace sluice::kernels
