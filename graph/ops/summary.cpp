// Summaries: serialized Summary protos for event files (graph-and-training §7.3).

#include "graph/ops/register.h"
#include "graph/ops/shapes.h"

namespace sluice::graph::ops {

void register_summary(OpRegistry& r) {
  r.add({.name = "ScalarSummary",
         .inputs = {"tags: string", "values: T"},
         .outputs = {"summary: string"},
         .attrs = {"T: realnumbertype"},
         .doc = "One scalar a tag; tags and values have the same shape.",
         .traits = kHostOnly,
         .infer = scalar_output});
  r.add({.name = "HistogramSummary",
         .inputs = {"tag: string", "values: T"},
         .outputs = {"summary: string"},
         .attrs = {"T: realnumbertype = float"},
         .doc = "A histogram of the values; NaN or infinity among them is an error.",
         .traits = kHostOnly,
         .infer = scalar_output});
  r.add({.name = "ImageSummary",
         .inputs = {"tag: string", "tensor: T"},
         .outputs = {"summary: string"},
         .attrs = {"max_images: int >= 1 = 3", "T: {uint8, float, half, double} = float",
                   "bad_color: tensor = uint8[255, 0, 0, 255]"},
         .doc = "The first max_images images of a [batch, height, width, 1|3|4] tensor as PNG.",
         .traits = kHostOnly,
         .infer = scalar_output});
  r.add({.name = "AudioSummary",
         .inputs = {"tag: string", "tensor: float"},
         .outputs = {"summary: string"},
         .attrs = {"sample_rate: float", "max_outputs: int >= 1 = 3"},
         .doc = "The first max_outputs clips of a [batch, frames, channels] tensor in [-1, 1] as 16-bit WAV.",
         .traits = kHostOnly,
         .infer = scalar_output});
  r.add({.name = "AudioSummaryV2",
         .inputs = {"tag: string", "tensor: float", "sample_rate: float"},
         .outputs = {"summary: string"},
         .attrs = {"max_outputs: int >= 1 = 3"},
         .doc = "AudioSummary with the sample rate as an input.",
         .traits = kHostOnly,
         .infer = scalar_output});
  r.add({.name = "TensorSummary",
         .inputs = {"tensor: T"},
         .outputs = {"summary: string"},
         .attrs = {"T: type", "description: string = \"\"", "labels: list(string) = []",
                   "display_name: string = \"\""},
         .doc = "A whole tensor under the node's name.",
         .traits = kHostOnly,
         .infer = scalar_output});
  r.add({.name = "TensorSummaryV2",
         .inputs = {"tag: string", "tensor: T", "serialized_summary_metadata: string"},
         .outputs = {"summary: string"},
         .attrs = {"T: type"},
         .doc = "A whole tensor under a tag, with the metadata that tells TensorBoard how to show it.",
         .traits = kHostOnly,
         .infer = scalar_output});
  r.add({.name = "MergeSummary",
         .inputs = {"inputs: N * string"},
         .outputs = {"summary: string"},
         .attrs = {"N: int >= 1"},
         .doc = "All values of the inputs in one summary; a tag may appear once.",
         .traits = kHostOnly,
         .infer = scalar_output});
}

}  // namespace sluice::graph::ops
