#!/bin/sh
# AG-UI with unmodified clients: `@ag-ui/client` 1.0.0 and 0.0.59, `@copilotkit/core` and the Node runtime; cards in Chromium with
# `@a2ui/react` and `@copilotkit/a2ui-renderer`.
# The one argument is the path of the `greenroom` binary.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-$here/../../../target}
program=${1:-$target/debug/greenroom}
folder=$target/outside/agui
runners=$here/../../../crates/cli/tests/host/runners

mkdir -p "$folder"
if ! cmp -s "$here/package.json" "$folder/installed.json"; then
    rm -rf "$folder/node_modules" "$folder/package-lock.json"
    cp "$here/package.json" "$folder/package.json"
    (cd "$folder" && npm install --no-audit --no-fund --loglevel=error --legacy-peer-deps)
    cp "$here/package.json" "$folder/installed.json"
fi
# Node resolves modules from the folder of the script.
cp "$here"/*.mjs "$here"/*.jsx "$folder/"

work=$(mktemp -d)
host=
end() {
    if [ -n "$host" ]; then
        kill "$host" 2>/dev/null || true
        wait "$host" 2>/dev/null || true
    fi
    rm -rf "$work"
}
trap end EXIT
trap 'exit 130' INT TERM

mkdir "$work/puppet"
cp "$here/dojo.toml" "$work/dojo.toml"
# The page of the cards is on an origin of its own.
port=$(node -e 'const s = require("net").createServer(); s.listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close(); })')
sed "s|PORT|$port|; s|PUPPET|$runners/puppet.py|" "$here/greenroom.toml" >"$work/greenroom.toml"
(cd "$work" && exec "$program" serve --config greenroom.toml --data data --listen 127.0.0.1:0 \
    >"$work/log" 2>&1) &
host=$!
# The file appears once the host is ready.
until [ -s "$work/data/host.json" ]; do
    kill -0 "$host" || { cat "$work/log"; exit 1; }
    sleep 0.05
done

url=$(node -p 'JSON.parse(require("fs").readFileSync(process.argv[1])).url' "$work/data/host.json")
token=$(cat "$work/data/admin-token")
cd "$work"
for version in 1 0; do
    node "$folder/clients.mjs" "$url" "$token" "$version"
done
node "$folder/copilot.mjs" "$url" "$token"
node "$folder/cards.mjs" "$url" "$token" "$port"
COPILOTKIT_TELEMETRY_DISABLED=true node "$folder/runtime.mjs" "$url" "$token"
