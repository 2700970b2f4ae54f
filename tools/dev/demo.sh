#!/usr/bin/env bash
# The main job on real images: builds, trains LeNet on Fashion-MNIST and prints its test accuracy, measures LeNet and
# ResNet-50 forward-only against training, dumps both graphs and draws one. Twenty minutes at most on two cores.
set -euo pipefail
cd "$(dirname "$0")/../.."
started=$(date +%s)
say() { printf '\n== [%4d s] %s\n' "$(($(date +%s) - started))" "$*"; }

say "Building"
./tools/dev/build.sh release > build-demo.log 2>&1 || { tail -40 build-demo.log; exit 1; }
rm -f build-demo.log
bin=build/release/bin
out=build/demo
mkdir -p "$out"

say "Training LeNet on Fashion-MNIST, 3 epochs"
"$bin/sluice-bench" --model=lenet --data_name=fashion_mnist --optimizer=momentum --learning_rate=0.02 --batch_size=64 \
  --num_epochs=3 --display_every=200 --eval_after_training

declare -A rate
measure() {  # name, flags
  local name=$1
  shift
  say "Measuring $name"
  rate[$name]=$("$bin/sluice-bench" --device=cpu --data_format=NHWC --optimizer=momentum "$@" | tee /dev/stderr |
    sed -n 's/^total images\/sec: //p')
}
measure "lenet forward" --model=lenet --batch_size=64 --num_batches=100 --forward_only
measure "lenet training" --model=lenet --batch_size=64 --num_batches=100
measure "resnet50 forward" --model=resnet50 --batch_size=16 --num_batches=10 --num_warmup_batches=2 --display_every=5 \
  --forward_only --graph_file="$out/resnet50_forward.pb"
measure "resnet50 training" --model=resnet50 --batch_size=16 --num_batches=10 --num_warmup_batches=2 --display_every=5 \
  --graph_file="$out/resnet50_training.pb"

say "Dumping the graphs"
for mode in forward training; do
  "$bin/sluice-graph" dump "$out/resnet50_$mode.pb" --format=text > "$out/resnet50_$mode.txt"
  "$bin/sluice-graph" stats "$out/resnet50_$mode.pb"
done
"$bin/sluice-bench" --model=lenet --device=cpu --data_format=NHWC --num_batches=1 --num_warmup_batches=0 \
  --graph_file="$out/lenet.pb" > /dev/null
"$bin/sluice-graph" dump "$out/lenet.pb" --format=dot > "$out/lenet.dot"
if command -v dot >/dev/null; then
  dot -Tsvg "$out/lenet.dot" -o "$out/lenet.svg" && echo "drawn: $out/lenet.svg"
else
  echo "drawing: $out/lenet.dot (Debian's graphviz turns it into a picture)"
fi

say "Images a second"
printf '%-10s %12s %12s %8s\n' model forward-only training ratio
for model in lenet resnet50; do
  awk -v m="$model" -v f="${rate[$model forward]}" -v t="${rate[$model training]}" \
    'BEGIN { printf "%-10s %12.1f %12.1f %8.2f\n", m, f, t, f / t }'
done
say "Done; files are in $out"
