#!/usr/bin/env python3
"""Event files, summaries, TFRecords and SequenceExamples, both ways with TensorFlow, and event files opened by
TensorBoard's own reader. usage: events.py EVENTS_CONFORMANCE. Exit 0: all agree; 1: something differs; 77: TensorFlow or
TensorBoard is absent."""
import glob
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import tensorflow.compat.v1 as tf
    from tensorboard.backend.event_processing import event_accumulator, event_file_loader
    from tensorboard.plugins.pr_curve import summary as pr_summary
    from tensorboard.util import tensor_util
except ImportError as e:
    print(f"skipped: no TensorFlow or TensorBoard here ({e})")
    sys.exit(77)

tf.disable_eager_execution()
tf.logging.set_verbosity(tf.logging.ERROR)
PROGRAM = sys.argv[1]
failures = []


def check(ok, what):
    print(("ok    " if ok else "FAIL  ") + what)
    if not ok:
        failures.append(what)


def sluice(*words):
    r = subprocess.run([PROGRAM, *words], capture_output=True, text=True)
    if r.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: exit {r.returncode}\n{r.stdout}{r.stderr}")
    return r.stdout


def numbers(dims):
    n = int(np.prod(dims))
    return ((np.arange(n) * 37 % 101 - 50) / 16).astype(np.float32).reshape(dims)


def expected_summaries():
    """What TensorFlow's ops give for the same values, by the name of our file."""
    with tf.Graph().as_default():
        c = lambda dims: tf.constant(numbers(dims))
        labels = c([60]) > 0.0
        metadata = tf.SummaryMetadata(plugin_data=tf.SummaryMetadata.PluginData(plugin_name="mine", content=b"c"))
        ops = {
            "scalar": tf.summary.scalar("loss", tf.constant(0.25)),
            "scalar_family": tf.summary.scalar("loss", tf.constant(0.5), family="fam"),
            "histogram": tf.summary.histogram("weights", c([300])),
            "histogram_empty": tf.summary.histogram("nothing", c([0])),
            "image": tf.summary.image("picture", c([2, 5, 4, 3])),
            "image_bytes": tf.summary.image("bytes", tf.cast(c([1, 3, 3, 1]) + 50.0, tf.uint8), max_outputs=1),
            "audio": tf.summary.audio("sound", c([2, 50, 2]) / 4.0, 8000.0),
            "tensor": tf.summary.tensor_summary("whole", c([2, 3]), summary_description="d", display_name="n",
                                                summary_metadata=metadata),
            "tensor_v1": tf.raw_ops.TensorSummary(tensor=c([2, 2]), name="old"),
            "text": tf.summary.text("words", tf.constant("**hello**")),
            "pr_curve": pr_summary.op("pr", labels, tf.sigmoid(c([60])), num_thresholds=11),
        }
        with tf.Session() as s:
            return s.run(ops)


def normal(serialized):
    """Values with pictures decoded and tensors as arrays: what may be stored in more than one way."""
    out = []
    for v in tf.Summary.FromString(serialized).value:
        v = tf.Summary.Value.FromString(v.SerializeToString())
        extra = None
        if v.WhichOneof("value") == "image":
            with tf.Graph().as_default(), tf.Session() as s:
                extra = s.run(tf.image.decode_png(v.image.encoded_image_string)).tolist()
            v.image.encoded_image_string = b""
        if v.WhichOneof("value") == "tensor":
            extra = tf.make_ndarray(v.tensor)
            extra = (str(extra.dtype), extra.shape, [x if isinstance(x, bytes) else round(float(x), 5) for x in extra.flat])
            v.ClearField("tensor")
        out.append((v, extra))
    return out


def summaries(folder):
    for name, want in expected_summaries().items():
        with open(f"{folder}/{name}.pb", "rb") as f:
            got = f.read()
        a, b = normal(want), normal(got)
        same = a == b
        check(same, f"summary {name} is TensorFlow's" + ("" if same else f"\n  TF {a}\n  we {b}"))


def event_files(folder):
    path = sorted(glob.glob(f"{folder}/kinds/*tfevents*"))[0]
    events = list(tf.train.summary_iterator(path))
    check(events[0].file_version == "brain.Event:2", "summary_iterator: the first event is the version")
    check([e.WhichOneof("what") for e in events] == ["file_version", "graph_def", "meta_graph_def", "session_log"] +
          ["summary"] * 3 + ["tagged_run_metadata", "session_log"], "summary_iterator: every event")
    check(events[-1].session_log.checkpoint_path == "/tmp/m", "summary_iterator: a session log")
    graph = tf.GraphDef.FromString(events[1].graph_def)
    check(any(n.op == "HistogramSummary" for n in graph.node), "the graph event is a GraphDef")
    meta = tf.MetaGraphDef.FromString(events[2].meta_graph_def)
    check("summaries" in meta.collection_def, "the meta graph event has the collections")
    run = tf.RunMetadata.FromString(events[7].tagged_run_metadata.run_metadata)
    check(events[7].tagged_run_metadata.tag == "step_3" and len(run.step_stats.dev_stats[0].node_stats) > 3,
          "run metadata has the nodes' times")
    names = {n.name for n in graph.node}
    known = [s.node_name in names for s in run.step_stats.dev_stats[0].node_stats]
    check(all(known), "run metadata speaks of nodes of the graph")

    loaded = list(event_file_loader.LegacyEventFileLoader(path).Load())
    check(len(loaded) == len(events), f"TensorBoard's loader gives every event, {len(loaded)} of {len(events)}")

    acc = event_accumulator.EventAccumulator(f"{folder}/kinds", size_guidance={k: 0 for k in ("tensors", "scalars")})
    acc.Reload()
    tags = acc.Tags()
    check(set(tags["scalars"]) == {"loss", "fam/fam/loss"}, f"accumulator: scalars {tags['scalars']}")
    check([s.value for s in acc.Scalars("loss")] == [0.25] * 3, "accumulator: a scalar's values")
    check([s.step for s in acc.Scalars("loss")] == [1, 2, 3], "accumulator: steps")
    check(set(tags["histograms"]) == {"weights", "nothing"}, "accumulator: histograms")
    check(acc.Histograms("weights")[0].histogram_value.num == 300, "accumulator: a histogram's count")
    check(set(tags["images"]) == {"picture/image/0", "picture/image/1", "bytes/image"}, f"accumulator: images {tags['images']}")
    check(acc.Images("bytes/image")[0].width == 3, "accumulator: an image's width")
    check(set(tags["audio"]) == {"sound/audio/0", "sound/audio/1"}, "accumulator: audio")
    check(set(tags["tensors"]) == {"whole", "words", "pr/pr_curves"}, f"accumulator: tensors {tags['tensors']}")
    check(tensor_util.make_ndarray(acc.Tensors("words")[0].tensor_proto).item() == b"**hello**", "accumulator: text")
    check(acc.SummaryMetadata("words").plugin_data.plugin_name == "text", "accumulator: text's plugin")
    check(acc.SummaryMetadata("pr/pr_curves").plugin_data.plugin_name == "pr_curves", "accumulator: the PR curve's plugin")
    check(len(acc.Tensors("pr/pr_curves")) == 3, "accumulator: the PR curve's steps")
    check(tags["graph"] and tags["meta_graph"] and tags["run_metadata"] == ["step_3"], "accumulator: graphs and run metadata")
    acc.Graph(), acc.MetaGraph(), acc.RunMetadata("step_3")

    acc = event_accumulator.EventAccumulator(f"{folder}/resumed")
    acc.Reload()
    check([s.step for s in acc.Scalars("loss")] == [0, 5, 10, 15, 20, 25], "TensorBoard drops what lies beyond START")

    with tf.Graph().as_default():
        with tf.summary.FileWriter(f"{folder}/theirs", tf.get_default_graph()) as w:
            w.add_summary(tf.Summary(value=[tf.Summary.Value(tag="a", simple_value=1)]), 4)
            w.add_session_log(tf.SessionLog(status=tf.SessionLog.START), 5)
    lines = sluice("events", glob.glob(f"{folder}/theirs/*")[0]).splitlines()
    check(lines == ["3 0", "4 0", "9 0", "5 4 a", "7 5"], f"we read TensorFlow's event file {lines}")


def records(folder):
    want = [b"", b"abc"] + [bytes([i]) * (i * 13) for i in range(200)]
    kinds = {"": tf.io.TFRecordCompressionType.NONE, "ZLIB": tf.io.TFRecordCompressionType.ZLIB,
             "GZIP": tf.io.TFRecordCompressionType.GZIP}
    for kind, theirs in kinds.items():
        options = tf.io.TFRecordOptions(theirs)
        got = list(tf.io.tf_record_iterator(f"{folder}/records{kind}", options))
        check(got == want, f"TensorFlow reads our records, compression '{kind}'")
        path = f"{folder}/their_records{kind}"
        with tf.io.TFRecordWriter(path, options) as w:
            for r in want:
                w.write(r)
        got = [bytes.fromhex(line) for line in sluice("records", path, kind).splitlines()]
        check(got == want, f"we read TensorFlow's records, compression '{kind}'")
    with open(f"{folder}/records", "rb") as a, open(f"{folder}/their_records", "rb") as b:
        data = a.read()
        check(data == b.read(), "plain record files are byte-equal")
    places = [tuple(map(int, line.split())) for line in open(f"{folder}/records.idx")]
    check([data[o + 12:o + n - 4] for o, n in places] == want, "the index points at the records")


def sequences(folder):
    e = tf.train.SequenceExample.FromString(next(tf.io.tf_record_iterator(f"{folder}/sequences")))
    check(list(e.context.feature["id"].int64_list.value) == [7, -1] and
          [list(f.bytes_list.value) for f in e.feature_lists.feature_list["words"].feature] == [[b"a", b"b"], [b"c"]] and
          list(e.feature_lists.feature_list["scores"].feature[0].float_list.value) == [0.5, -1],
          "TensorFlow reads our SequenceExample")
    path = f"{folder}/their_sequences"
    with tf.io.TFRecordWriter(path) as w:
        w.write(e.SerializeToString())
    sluice("sequence", path)
    again = tf.train.SequenceExample.FromString(next(tf.io.tf_record_iterator(path + ".again")))
    check(again == e, "we read TensorFlow's SequenceExample and write the same")


with tempfile.TemporaryDirectory() as folder:
    sluice("write", folder)
    summaries(folder)
    event_files(folder)
    records(folder)
    sequences(folder)
print(f"{len(failures)} differences")
sys.exit(1 if failures else 0)
