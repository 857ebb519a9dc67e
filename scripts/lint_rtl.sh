#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Lints the RTL: the file list is complete; every module, as top of its own, is clean under
# `verilator --lint-only -Wall` at every data width; verible's rules; the core goes through Yosys's
# SystemVerilog front end. The board tops, too, with models of the ECP5's cells; their pins and clock crossings are checked.
# Names of modules may be given to lint only those.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH=$PWD/.tools/bin:$PATH
list=rtl/rnic.f
boards=rtl/board/board.f
failed=0
fail() { printf 'lint: %s\n' "$*" >&2; failed=1; }

[[ -f $list ]] || { echo "lint: $list is missing" >&2; exit 1; }
mapfile -t core < <(grep -Ev '^[[:space:]]*(//|#|$)' "$list")
mapfile -t board < <(grep -Ev '^[[:space:]]*(//|#|$)' "$boards")
files=("${core[@]}" "${board[@]}")
models=(testbench/tops/ecp5/*.sv)
differing=$(diff <(printf '%s\n' "${files[@]}" | sort) <(find rtl -name '*.sv' | sort) | grep '^[<>]' || true)
[[ -z $differing ]] || fail "$list, $boards and the files of rtl/ differ (< listed, > there):"$'\n'"$differing"

widths=(64 128 256 512)
# One line per run: module, then its parameters.
runs=()
for file in "${files[@]}"; do
  module=$(basename "$file" .sv)
  [[ $module == *_pkg ]] && continue
  (($#)) && [[ " $* " != *" $module "* ]] && continue
  grep -qE "^module +$module\b" "$file" || { fail "$file does not define the module $module"; continue; }
  if grep -qE 'parameter +(int +)?(unsigned +)?DataW\b' "$file"; then
    for width in "${widths[@]}"; do runs+=("$module -GDataW=$width"); done
  elif grep -qE 'parameter +bit +Loopback\b' "$file"; then
    for image in 0 1; do runs+=("$module -GLoopback=$image"); done
  else
    runs+=("$module")
  fi
done

lint_one() {
  local module=$1 log
  shift
  log=$(verilator --lint-only -Wall -sv --no-timing --top-module "$module" "$@" "${LINT_FILES[@]}" 2>&1) ||
    { printf '%s %s:\n%s\n' "$module" "$*" "$log"; return 1; }
}
export -f lint_one
printf 'verilator --lint-only -Wall: %d runs\n' "${#runs[@]}"
((${#runs[@]})) || { echo "lint: no module to lint" >&2; exit 1; }
# What cannot even be read would be told once per module.
read -ra first <<<"${runs[0]}"
log=$(LINT_FILES=("${files[@]}" "${models[@]}") && lint_one "${first[@]}") || if grep -q '^%Error: rtl/' <<<"$log"; then
  printf '%s\n' "$log" >&2
  exit 1
fi
# The file list goes through the environment, as arrays do not.
printf '%s\n' "${runs[@]}" |
  LINT_LIST="${files[*]} ${models[*]}" xargs -P "$(nproc)" -I{} bash -c 'read -ra LINT_FILES <<<"$LINT_LIST"; lint_one {}' ||
  fail "verilator found the above"

printf 'verible-verilog-lint: %d files\n' "$((${#files[@]} + ${#models[@]}))"
verible-verilog-lint --rules_config scripts/verible.rules "${files[@]}" "${models[@]}" || fail "verible found the above"

if (($# == 0)); then
  for width in "${widths[@]}"; do
    top=rnic_top_$width
    printf 'yosys read_slang: %s\n' "$top"
    log=$(yosys -p "read_slang --unroll-limit 100000 --top $top ${core[*]} ; hierarchy -check -top $top" 2>&1) ||
      { tail -n 30 <<<"$log" >&2; fail "yosys cannot read $top"; }
  done
  python=.tools/venv/bin/python
  $python -m unittest -q scripts/test_scripts.py || fail "scripts do not do what their tests want"
  $python scripts/check_lpf.py || fail "constraints as told above"
  $python scripts/check_lpf.py --self-test || fail "the check of the constraints misses faults"
  $python scripts/cdc.py --image loopback || fail "clock crossings as told above"
  # The core is the same for all boards: one is read whole.
  $python scripts/cdc.py versa5g --image rnic || fail "clock crossings as told above"
  $python scripts/cdc.py --self-test || fail "the check of clock crossings misses faults"
fi
((failed == 0)) && echo "RTL lint: clean"
exit $failed
