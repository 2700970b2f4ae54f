#!/usr/bin/env bash
# Builds Sluice: ./tools/dev/build.sh [preset [target…]]   (release by default; dev, asan, tsan; see CMakePresets.json)
# Installs what is missing with apt (as root or through sudo), then builds into build/<preset>; programs are in
# build/<preset>/bin. No other network access.
set -euo pipefail
cd "$(dirname "$0")/../.."
preset=${1:-release}
targets=("${@:2}")

install_missing() {
  local missing=() name
  while read -r name; do
    [[ -z $name || $name == \#* ]] && continue
    dpkg-query -W -f='${Status}' "$name" 2>/dev/null | grep -q 'install ok installed' || missing+=("$name")
  done < tools/dev/packages.txt
  [[ ${#missing[@]} -eq 0 ]] && return
  local run=()
  if [[ $(id -u) -ne 0 ]]; then
    command -v sudo >/dev/null || { echo "build.sh: needs root or sudo to install: ${missing[*]}" >&2; exit 1; }
    run=(sudo)
  fi
  echo "Installing with apt: ${missing[*]}"
  "${run[@]}" apt-get update -qq
  "${run[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

if command -v apt-get >/dev/null; then install_missing; fi
if command -v ccache >/dev/null; then export CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
cmake --preset "$preset"
cmake --build --preset "$preset" -j "$(nproc)" ${targets:+--target "${targets[@]}"}
echo "Built: build/$preset/bin"
