#!/usr/bin/env python3
"""input_bench's chains with tf.data, in turn with input_bench itself; prints rates and their ratio.

Usage: input_twin.py path/to/input_bench [seconds]
Each of tf.data's rates is its best over fixed and tuned parallelism, and over iterating from Python and inside
TensorFlow (Dataset.reduce), so that the ratio compares pipelines and not languages.
"""
import os
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf

IMAGES, PIXELS, BATCH = 60_000, 784, 128


def chain(name, path, calls):
    label = tf.io.FixedLenFeature([], tf.int64)
    if name == "images":
        images = np.random.default_rng(1).integers(0, 256, (IMAGES, 28, 28), dtype=np.uint8)
        labels = np.arange(IMAGES, dtype=np.int64) % 10
        d = tf.data.Dataset.from_tensor_slices((images, labels)).repeat()
        d = d.map(lambda x, y: (tf.cast(x, tf.float32) / 255.0, y), num_parallel_calls=calls)
        return d.shuffle(10_000, seed=1).batch(BATCH, drop_remainder=True).prefetch(2)
    if name == "records":
        features = {"image": tf.io.FixedLenFeature([], tf.string), "label": label}
        d = tf.data.TFRecordDataset([path]).repeat().batch(BATCH, drop_remainder=True)
        return d.map(lambda r: tf.io.parse_example(r, features), num_parallel_calls=calls).prefetch(2)
    features = {"image": tf.io.FixedLenFeature([PIXELS], tf.float32), "label": label}
    d = tf.data.TFRecordDataset([path]).repeat()
    d = d.map(lambda r: tf.io.parse_single_example(r, features), num_parallel_calls=calls)
    return d.shuffle(1_000, seed=1).batch(BATCH, drop_remainder=True).prefetch(2)


def tf_rate(name, path, seconds):
    best = 0.0
    for calls in (2, tf.data.AUTOTUNE):
        d = chain(name, path, calls)
        batches = iter(d)
        for _ in range(20):
            next(batches)
        start, n = time.monotonic(), 0
        while time.monotonic() - start < seconds:
            for _ in range(10):
                next(batches)
            n += 10
        best = max(best, n * BATCH / (time.monotonic() - start))
        del batches
        few = max(n // 2, 20)
        start = time.monotonic()
        d.take(few).reduce(np.int64(0), lambda count, *_: count + 1).numpy()
        best = max(best, few * BATCH / (time.monotonic() - start))
    return best


def our_rate(program, name, path, seconds, *more):
    out = subprocess.run([program, name, path, str(seconds), *more], check=True, capture_output=True, text=True)
    return float(out.stdout.split()[1])


def main():
    program, seconds = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 3.0
    print(f"{'chain':9} {'ours/s':>10} {'session/s':>10} {'tf.data/s':>10} {'ratio':>6}")
    with tempfile.TemporaryDirectory() as folder:
        files = {"images": "-"}
        for name, kind in (("records", "bytes"), ("floats", "floats")):
            files[name] = os.path.join(folder, name)
            subprocess.run([program, "write", files[name], kind], check=True)
        for name, path in files.items():
            ours = theirs = session = 0.0
            for _ in range(2):  # in turn: a busy neighbour meets both
                ours = max(ours, our_rate(program, name, path, seconds))
                theirs = max(theirs, tf_rate(name, path, seconds))
                session = max(session, our_rate(program, name, path, seconds, "session"))
            print(f"{name:9} {ours:10.0f} {session:10.0f} {theirs:10.0f} {ours / theirs:6.2f}")


if __name__ == "__main__":
    main()
