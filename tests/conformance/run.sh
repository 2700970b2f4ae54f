#!/usr/bin/env bash
# Runs one conformance script with the oracle's Python: run.sh SCRIPT ARGS… . Exit 77 with the reason where there is no
# oracle (tools/dev/oracle.sh makes one).
set -u
script=$1
shift
python=${SLUICE_ORACLE_PYTHON:-${SLUICE_ORACLE_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/sluice/oracle}/bin/python}
[ -x "$python" ] || { echo "skipped: no TensorFlow here ($python is absent; run tools/dev/oracle.sh)"; exit 77; }
"$python" -c 'import tensorflow' 2>/dev/null || { echo "skipped: $python has no TensorFlow"; exit 77; }
export TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES= TF_ENABLE_ONEDNN_OPTS=0
exec "$python" "$script" "$@"
