#!/usr/bin/env bash
# Installs what the tests need and this machine lacks. Says what it does; does nothing the second time.
set -euo pipefail

say() { printf 'prepare: %s\n' "$*" >&2; }

install_packages() {
  say "installing $* (apt)"
  local sudo=()
  [ "$(id -u)" -eq 0 ] || sudo=(sudo)
  "${sudo[@]}" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

missing=()
command -v cc >/dev/null || missing+=(gcc libc6-dev)
command -v git >/dev/null || missing+=(git)
compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || command -v initdb >/dev/null || missing+=(postgresql)
command -v python3 >/dev/null || missing+=(python3)
command -v node >/dev/null || missing+=(nodejs)
command -v npm >/dev/null || missing+=(npm)
if command -v python3 >/dev/null && ! python3 -c 'import ensurepip' 2>/dev/null; then missing+=(python3-venv); fi
[ ${#missing[@]} -eq 0 ] || install_packages "${missing[@]}"

if ! cargo nextest --version >/dev/null 2>&1; then
  say "installing cargo-nextest (a few minutes, once)"
  cargo install --locked --quiet cargo-nextest
fi
