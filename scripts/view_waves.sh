#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Opens the first trace named <prefix>*.fst with its saved signal groups in Surfer or GTKWave.
set -euo pipefail
prefix=${1:?usage: view_waves.sh PREFIX}
shopt -s nullglob
traces=("$prefix"*.fst)
((${#traces[@]})) || { echo "no trace $prefix*.fst: run with WAVES=1 first" >&2; exit 1; }
printf 'trace: %s\n' "${traces[@]}"
trace=${traces[0]}
base=${trace%.fst}
if command -v surfer >/dev/null; then
  exec surfer "$trace" --command-file "$base.sucl"
elif command -v gtkwave >/dev/null; then
  exec gtkwave "$trace" "$base.gtkw"
else
  echo "install Surfer or GTKWave to look at it: surfer $trace --command-file $base.sucl, or gtkwave $trace $base.gtkw"
fi
