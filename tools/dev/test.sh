#!/usr/bin/env bash
# All tests: ./tools/dev/test.sh [quick]
# Builds the release preset with warnings as errors and runs the labels unit, conformance (where the oracle is, see
# oracle.sh) and house, and ptx where ptxas is; then the unit tests under AddressSanitizer + UBSan and the
# concurrent ones under ThreadSanitizer. `quick` leaves the sanitizers out. Long work has labels of its own (zoo, soak,
# fuzz) and is not run here.
set -euo pipefail
cd "$(dirname "$0")/../.."
quick=${1:-}
started=$(date +%s)

run_ctest() {  # preset, ctest arguments
  local preset=$1
  shift
  echo "== $preset: ctest $*"
  ctest --test-dir "build/$preset" --output-on-failure --no-tests=error -j "$(nproc)" "$@"
}

failed=0
./tools/dev/build.sh release
labels='^(unit|conformance|house)$'
if command -v ptxas >/dev/null; then labels='^(unit|conformance|house|ptx)$'; fi
run_ctest release -L "$labels" || failed=1

if [[ $quick != quick ]]; then
  # Shortened: programs, lessons and the big networks run the same code once more.
  asan=(data_pipeline_tests data_tests dsl_tests dsl_train_{events,loop,optim,saver}_tests fuzz_{bundle,event,example} \
        fuzz_{meta_graph,meta_graph_text,record,table} graph_cli_tests graph_tests kernel_tests ops_tests passes_tests \
        runtime_{io_,training_,}tests)
  ./tools/dev/build.sh asan "${asan[@]}"
  names=$(IFS='|'; echo "${asan[*]}")
  ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1 run_ctest asan -L '^unit$' -R "^($names)$" || failed=1
  # Sessions, executor, queues, concurrent runs. (Debian's protobuf is not instrumented and its headers lay messages out
  # differently under TSan, so tests that write graph files stay out.)
  ./tools/dev/build.sh tsan runtime_tests runtime_training_tests
  TSAN_OPTIONS="halt_on_error=0 exitcode=66" run_ctest tsan -L '^unit$' -R '^(runtime_tests|runtime_training_tests)$' || failed=1
fi
echo "test.sh took $(( $(date +%s) - started )) s"
exit $failed
