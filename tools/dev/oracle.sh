#!/usr/bin/env bash
# Prepares the oracle of the conformance tests: a virtual environment with TensorFlow, outside the tree.
# Prints the path of its Python. Where: $SLUICE_ORACLE_VENV, by default ~/.cache/sluice/oracle.
set -euo pipefail
cd "$(dirname "$0")/../.."
venv=${SLUICE_ORACLE_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/sluice/oracle}
pins=tests/conformance/requirements.txt
stamp="$venv/pins-$(sha256sum < "$pins" | cut -c1-16)"
if [[ ! -e $stamp ]]; then
  python3 -m venv "$venv" >&2
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$pins" >&2
  touch "$stamp"
fi
echo "$venv/bin/python"
