#!/bin/sh
# The MCP gateway with the SDKs of TypeScript and Python, and with the official conformance suite.
# The one argument is the path of the `greenroom` binary.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-$here/../../../target}
program=${1:-$target/debug/greenroom}
folder=$target/outside/mcp-gateway
runners=$here/../../../crates/cli/tests/host/runners

mkdir -p "$folder"
if ! cmp -s "$here/package.json" "$folder/installed.json"; then
    rm -rf "$folder/node_modules" "$folder/package-lock.json"
    cp "$here/package.json" "$folder/package.json"
    (cd "$folder" && npm install --no-audit --no-fund --loglevel=error)
    cp "$here/package.json" "$folder/installed.json"
fi
if ! cmp -s "$here/requirements.txt" "$folder/venv/installed.txt"; then
    rm -rf "$folder/venv"
    python3 -m venv "$folder/venv"
    "$folder/venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
    cp "$here/requirements.txt" "$folder/venv/installed.txt"
fi
# Node resolves modules from the folder of the script. The suite needs a newer Node than the web interface.
cp "$here"/*.mjs "$folder/"
node=$folder/node_modules/node/bin/node
python=$folder/venv/bin/python

work=$(mktemp -d)
started=
end() {
    for process in $started; do
        kill "$process" 2>/dev/null || true
        wait "$process" 2>/dev/null || true
    done
    rm -rf "$work"
}
trap end EXIT
trap 'exit 130' INT TERM

mkdir -p "$work/puppet" "$work/skills/booking"
echo "a-secret-of-the-tests" >"$work/secret"
printf -- '---\nname: booking\ndescription: Book a room\n---\n# How to book\n' >"$work/skills/booking/SKILL.md"
sed "s|PUPPET|$runners/puppet.py|" "$here/greenroom.toml" >"$work/greenroom.toml"
(cd "$work" && exec "$program" serve --config greenroom.toml --data data --listen 127.0.0.1:0 \
    >"$work/log" 2>&1) &
host=$!
started=$host
# The file appears once the host is ready.
until [ -s "$work/data/host.json" ]; do
    kill -0 "$host" || { cat "$work/log"; exit 1; }
    sleep 0.05
done
url=$("$node" -p 'JSON.parse(require("fs").readFileSync(process.argv[1])).url' "$work/data/host.json")
admin=$(cat "$work/data/admin-token")

# A run that stays active and tells its address and token.
"$program" send '[["keep","runtime","runtime"],["gate","go"],["end"]]' --agent gate --data "$work/data" --json \
    >"$work/sent"
until [ -s "$work/puppet/runtime" ]; do
    kill -0 "$host" || { cat "$work/log"; exit 1; }
    sleep 0.05
done
read_json() { "$node" -p 'JSON.parse(require("fs").readFileSync(process.argv[1])).'"$2" "$1"; }
token=$(read_json "$work/puppet/runtime" metadata.run_token)
run=$(read_json "$work/sent" run_id)
gateway=$url/mcp/runs/$run

"$node" "$folder/client.mjs" "$gateway" "$token" "$url" "$admin"
"$python" "$here/client.py" "$gateway" "$token"

"$node" "$folder/forward.mjs" "$gateway" "$token" >"$work/forward" &
started="$started $!"
until [ -s "$work/forward" ]; do sleep 0.05; done
(cd "$work" && "$node" "$folder/node_modules/@modelcontextprotocol/conformance/dist/index.js" server \
    --url "$(cat "$work/forward")" --expected-failures "$here/expected-failures.yml" >"$work/conformance" 2>&1) \
    || { cat "$work/conformance"; exit 1; }
echo "conformance suite: ok"
touch "$work/puppet/go"
