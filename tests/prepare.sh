#!/usr/bin/env bash
# Installs missing test tools. Prints what it does; does nothing the second time.
set -euo pipefail

say() { printf 'prepare: %s\n' "$*" >&2; }

sudo=()
[ "$(id -u)" -eq 0 ] || sudo=(sudo)

install_packages() {
  say "installing $* (apt)"
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
command -v chromium >/dev/null || missing+=(chromium)
# Without a Chinese font, screenshots show empty boxes.
compgen -G '/usr/share/fonts/*/wqy/*' >/dev/null || missing+=(fonts-wqy-zenhei)
if command -v python3 >/dev/null && ! python3 -c 'import ensurepip' 2>/dev/null; then missing+=(python3-venv); fi
[ ${#missing[@]} -eq 0 ] || install_packages "${missing[@]}"

# An older Node cannot build the web interface.
if [ "$(node -p 'parseInt(process.versions.node)')" -lt 20 ]; then
  say "installing Node 22 (npm)"
  "${sudo[@]}" npm install --global --no-audit --no-fund --loglevel=error node@22
fi

if ! cargo nextest --version >/dev/null 2>&1; then
  say "installing cargo-nextest (a few minutes, once)"
  cargo install --locked --quiet cargo-nextest
fi

# The published LangBot SDK, for the tests of the LangBot wire.
langbot=0.7.18
venv=$HOME/.cache/greenroom/langbot-$langbot
if ! "$venv/bin/python" -c 'import langbot_plugin' 2>/dev/null || [ ! -d "$venv/wheels" ]; then
  say "installing langbot-plugin $langbot into $venv"
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" download --quiet --disable-pip-version-check -d "$venv/wheels" "langbot-plugin==$langbot"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --no-index --find-links "$venv/wheels" \
    "langbot-plugin==$langbot"
fi
