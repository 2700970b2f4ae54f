#!/usr/bin/env python3
"""Input pipelines: the chains of input_tool.cpp in tf.data, over files that TensorFlow writes.

usage: input_pipeline.py INPUT_TOOL
Exit: 0 all agree, 1 some do not, 77 no TensorFlow.
"""
import os
import subprocess
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
try:
    import numpy as np
    import tensorflow as tf
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)

Dataset = tf.data.Dataset


def text(x):
    x = np.asarray(x, dtype=object if isinstance(x, bytes) else None)  # numpy's own strings lose trailing zeros
    kind = {"f": "float", "i": f"int{8 * x.dtype.itemsize}"}.get(x.dtype.kind, "string")
    if kind == "string":
        values = ["x" + v.hex() for v in x.reshape(-1)]
    elif kind == "float":
        values = [f"{np.float64(v):.9g}" for v in x.reshape(-1)]
    else:
        values = [str(v) for v in x.reshape(-1)]
    return " ".join([kind, *map(str, x.shape), ":", *values])


def flat(element):
    if isinstance(element, (tuple, list)):
        return [x for part in element for x in flat(part)]
    if isinstance(element, dict):  # features in the order input_tool asks for them
        return [x for key in ("f", "s", "v", "w") for x in flat(element[key])]
    if isinstance(element, tf.sparse.SparseTensor):
        return [element.indices.numpy(), element.values.numpy(), element.dense_shape.numpy()]
    return [element.numpy()]


def show(name, dataset):
    return [" | ".join([name] + [text(x) for x in flat(e)]) for e in dataset]


def example(**features):
    def feature(v):
        if isinstance(v[0], bytes):
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=v))
        if isinstance(v[0], float):
            return tf.train.Feature(float_list=tf.train.FloatList(value=v))
        return tf.train.Feature(int64_list=tf.train.Int64List(value=v))
    fs = tf.train.Features(feature={k: feature(v) for k, v in features.items()})
    return tf.train.Example(features=fs).SerializeToString()


def write_files(folder):
    def path(name):
        return os.path.join(folder, name)
    with open(path("lines0"), "wb") as f:
        f.write(b"one\r\n\ntwo  \n")
    with open(path("lines1"), "wb") as f:
        f.write(b"three")
    with open(path("csv"), "w") as f:
        f.write('i,f,s\n1,2.5,a\n-3, 1e-3 ,"b ""q"", c"\n7,NA,"two\nlines"\n2147483647,,\n')
    for name, kind in (("records", ""), ("records_gzip", "GZIP"), ("records_zlib", "ZLIB")):
        with tf.io.TFRecordWriter(path(name), tf.io.TFRecordOptions(compression_type=kind)) as w:
            for i in range(11):
                parts = dict(w=[b"word%d" % i], s=[(-3) ** k for k in range(i % 4)] or [i], v=[b"a" * k for k in range(i % 3)] or [b""])
                if i % 5:
                    parts["f"] = [i / 3.0, -1.5 * i]
                w.write(example(**parts))
    return path


def chains(path):
    upto = Dataset.range
    for cycle in (1, 2, 3, 5):
        for block in (1, 2, 4):
            d = show(f"interleave_{cycle}_{block}", upto(9).interleave(upto, cycle_length=cycle, block_length=block))
            yield from d
            yield from ["parallel_" + line for line in d]
    ones = lambda a, b: upto(a, b).map(lambda n: tf.fill([n], n))
    yield from show("batch", upto(11).batch(4))
    yield from show("batch_drop", upto(11).batch(4, drop_remainder=True))
    yield from show("padded", ones(0, 7).padded_batch(3))
    yield from show("padded_to", ones(0, 5).padded_batch(2, [6], np.int64(-1)))
    yield from show("shard", upto(17).shard(5, 3))
    yield from show("zip", Dataset.zip((upto(5), upto(10, 100, 7))))
    yield from show("range_down", upto(10, -3, -4))
    yield from show("repeat_take_skip", upto(3).repeat(4).skip(2).take(7))
    yield from show("concatenate", upto(3).concatenate(upto(7, 9)).repeat(2))
    yield from show("lines", tf.data.TextLineDataset([path("lines0"), path("lines1")]))
    yield from show("csv", tf.data.experimental.CsvDataset(path("csv"), [tf.int32, [7.5], ["d"]], header=True, na_value="NA"))
    yield from show("records", tf.data.TFRecordDataset(path("records")))
    yield from show("records_gzip", tf.data.TFRecordDataset(path("records_gzip"), "GZIP"))
    yield from show("records_zlib", tf.data.TFRecordDataset(path("records_zlib"), "ZLIB"))
    features = {"f": tf.io.FixedLenFeature([2], tf.float32, [8.0, 9.0]),
                "s": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
                "v": tf.io.VarLenFeature(tf.string), "w": tf.io.FixedLenFeature([], tf.string)}
    records = tf.data.TFRecordDataset(path("records"))
    yield from show("parse_batch", records.batch(4).map(lambda r: tf.io.parse_example(r, features)))
    yield from show("parse_single", records.map(lambda r: tf.io.parse_single_example(r, features)))


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = write_files(folder)
        ours = subprocess.run([sys.argv[1], folder], check=True, capture_output=True, text=True).stdout.splitlines()
        theirs = list(chains(path))
    ours, theirs = sorted_by_chain(ours), sorted_by_chain(theirs)
    bad = [name for name in sorted(set(ours) | set(theirs)) if ours.get(name) != theirs.get(name)]
    for name in bad:
        print(f"{name}:")
        for a, b in zip(ours.get(name, []) + ["(end)"], theirs.get(name, []) + ["(end)"]):
            if a != b:
                print(f"  ours   {a}\n  tf.data {b}")
                break
    print(f"{len(theirs) - len(bad)} of {len(theirs)} chains agree, {sum(map(len, theirs.values()))} elements")
    return 1 if bad else 0


def sorted_by_chain(lines):
    chains_by_name = {}
    for line in lines:
        chains_by_name.setdefault(line.split()[0], []).append(" ".join(line.split()))
    return chains_by_name


if __name__ == "__main__":
    sys.exit(main())
