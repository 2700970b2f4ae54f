#!/usr/bin/env bash
# Every source file is formatted as .clang-format says; names the files that are not. Exit 77: no clang-format here.
set -u
cd "$(dirname "$0")/../.."
command -v clang-format >/dev/null || { echo "skipped: clang-format is not installed"; exit 77; }
files=$(find graph passes runtime kernels dsl tools tests -name '*.h' -o -name '*.cpp' | sort)
bad=$(clang-format --dry-run $files 2>&1 | grep -oE '^[^:]+\.(h|cpp)' | sort -u)
[ -z "$bad" ] && { echo "format: all files as they should be"; exit 0; }
printf 'not formatted (run clang-format -i on them):\n%s\n' "$bad"
exit 1
