#!/bin/sh
# The web interface in a real browser, against the real program: `run.sh [PROGRAM]`.
# Debug builds of the program read `web/dist` from disk, so build that first (`make web`).
set -eu

here=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-$here/../../../target}
GREENROOM=${1:-$target/debug/greenroom}
export GREENROOM
cd "$here"

if ! command -v chromium >/dev/null || ! ls /usr/share/fonts/*/wqy >/dev/null 2>&1; then
    "$here/../../prepare.sh"
fi
if ! cmp -s package-lock.json node_modules/installed.json; then
    npm ci --no-audit --no-fund --prefer-offline --loglevel=error
    cp package-lock.json node_modules/installed.json
fi

exec node --test --test-concurrency=2 --test-reporter=spec ./*.test.mjs
