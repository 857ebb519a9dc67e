#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Stands in for `verilator` when a model is built: marlin-verilator has no setters for parameters,
# assertions and compiler flags. The settings come from the file settings.sh beside this script
# (ONR_VERILATOR, ONR_VERSION, ONR_TOP, ONR_FLAGS, ONR_CFLAGS, ONR_OPT_FAST, ONR_OPT_SLOW, ONR_JOBS).
# Verilates under the fixed name Vonr_model, lists the ports that the generated header declares for
# the shim, then compiles in few units.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=/dev/null
source "$here/settings.sh"

if [[ ${1:-} == --version ]]; then
  echo "$ONR_VERSION"
  exit 0
fi

args=() make_args=() mdir=
while (($#)); do
  case $1 in
    --build) ;;
    -j | --top-module) shift ;;
    -MAKEFLAGS) make_args+=("$2"); shift ;;
    --Mdir) mdir=$2; args+=("$1" "$2"); shift ;;
    *) args+=("$1") ;;
  esac
  shift
done

"$ONR_VERILATOR" "${args[@]}" --prefix Vonr_model --top-module "$ONR_TOP" \
  "${ONR_FLAGS[@]}" -CFLAGS "$ONR_CFLAGS"

awk '
  match($0, /VL_(IN|OUT)(8|16|64|W)?\(&[A-Za-z_0-9]+,[0-9]+,[0-9]+/) {
    s = substr($0, RSTART, RLENGTH)
    kind = (s ~ /^VL_IN/) ? "IN" : "OUT"
    wide = (s ~ /^VL_(IN|OUT)W/) ? "W" : ""
    sub(/^[^&]*&/, "", s)
    split(s, f, ",")
    if (f[3] != 0) { print "port " f[1] " does not end at bit 0" > "/dev/stderr"; exit 1 }
    if (f[1] == "clk_i") print "#define ONR_CLK 1"
    list = list "  ONR_" kind wide "(" f[1] ", " (f[2] + 1) ") \\\n"
    n++
  }
  /VL_(IN|OUT|INOUT)(8|16|64|W)?\(\(&/ || /VL_INOUT/ {
    print "unpacked and inout ports are not supported: " $0 > "/dev/stderr"; exit 1
  }
  END { print "#define ONR_NUM_PORTS " n + 0; print "#define ONR_PORTS \\\n" list }
' "$mdir/Vonr_model.h" >"$mdir/onr_ports.inc"

# One unit of fast code and one of slow, two of each where there is much, for two compilers side by side. Verilator's own way, many units
# behind two precompiled headers, takes twice as long for a block: the headers alone are more work than its code.
units() { # kind, files by size: their units' names
  local kind=$1 n=0 bytes
  shift
  bytes=$(cat "$@" | wc -c)
  : >"$mdir/onr_${kind}0.cpp"
  ((bytes < 2000000)) || : >"$mdir/onr_${kind}1.cpp"
  for file in "$@"; do
    echo "#include \"${file##*/}\"" >>"$mdir/onr_$kind$((bytes < 2000000 ? 0 : n++ % 2)).cpp"
  done
  (cd "$mdir" && echo onr_"$kind"?.cpp)
}
mapfile -t fast < <(ls -S "$mdir"/Vonr_model*.cpp | grep -v 'Slow\.cpp$')
mapfile -t slow < <(ls -S "$mdir"/Vonr_model*Slow.cpp)
fast_units=$(units fast "${fast[@]}") slow_units=$(units slow "${slow[@]}")
make_args+=(VM_SUPPORT_FAST= VM_SUPPORT_SLOW= VK_PCH_I_FAST= VK_PCH_I_SLOW=
  VM_CLASSES_FAST="${fast_units//.cpp/}" VM_CLASSES_SLOW="${slow_units//.cpp/}")
touch "$mdir"/Vonr_model__pch.h.{fast,slow}.gch

if command -v ccache >/dev/null; then
  export OBJCACHE=ccache
  export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
fi
exec make -s -C "$mdir" -f Vonr_model.mk -j "$ONR_JOBS" "${make_args[@]}" \
  OPT_FAST="$ONR_OPT_FAST" OPT_GLOBAL="$ONR_OPT_FAST" OPT_SLOW="$ONR_OPT_SLOW"
