#!/usr/bin/env bash
# Installs a build to a fresh prefix and builds the ten-line consumer and the stranger's extension against it, from copies
# outside the tree; neither may see the source. run.sh BUILD_DIR SOURCE_DIR
set -euo pipefail
build=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/prefix" > "$work/install.log"
for project in consumer extension readme; do
  if [ $project = readme ]; then  # the README's own program
    cp -r "$source/tests/consumer" "$work/readme"
    sed -n '/^```cpp$/,/^```$/p' "$source/README.md" | sed '1d;$d' > "$work/readme/main.cpp"
    sed -i 's/(consumer/(readme/' "$work/readme/CMakeLists.txt"
  else
    cp -r "$source/tests/$project" "$work/$project"
  fi
  cmake -S "$work/$project" -B "$work/$project/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_PREFIX_PATH="$work/prefix" > "$work/$project.log" || { cat "$work/$project.log"; exit 1; }
  cmake --build "$work/$project/build" > "$work/$project.build.log" || { cat "$work/$project.build.log"; exit 1; }
  if grep -q "$source" "$work/$project/build/build.ninja"; then
    echo "$project reaches into the source tree"
    exit 1
  fi
  "$work/$project/build/$project" || { echo "$project failed with $?"; exit 1; }
  echo "$project: ok"
done
