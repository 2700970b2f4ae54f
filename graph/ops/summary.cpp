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
  r.add({.name = "MergeSummary",
         .inputs = {"inputs: N * string"},
         .outputs = {"summary: string"},
         .attrs = {"N: int >= 1"},
         .doc = "All values of the inputs in one summary; a tag may appear once.",
         .traits = kHostOnly,
         .infer = scalar_output});
}

}  // namespace sluice::graph::ops
