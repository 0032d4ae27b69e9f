#!/bin/sh
# Tests the host with third-party programs: schemathesis on /openapi.json, an SSE client, and the reference verifier
# of Standard Webhooks. The one argument is the path of the `greenroom` binary.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-$here/../../target}
program=${1:-$target/debug/greenroom}
venv=$target/outside/venv
wanted=$venv/installed.txt

if ! cmp -s "$here/requirements.txt" "$wanted"; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
    cp "$here/requirements.txt" "$wanted"
fi

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

"$venv/bin/python" "$here/clients.py" --prepare "$work"
(cd "$work" && exec "$program" serve --config greenroom.toml --data data --listen 127.0.0.1:0 \
    >"$work/log" 2>&1) &
host=$!
# The file appears once the host is ready.
until [ -s "$work/data/host.json" ]; do
    kill -0 "$host" || { cat "$work/log"; exit 1; }
    sleep 0.05
done

url=$("$venv/bin/python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["url"])' \
    "$work/data/host.json")
token=$(cat "$work/data/admin-token")

"$venv/bin/python" "$here/clients.py" --url "$url" --token "$token" "$work"

# Every failure prints a seed; set SEED to reproduce it.
cd "$work"
SCHEMATHESIS_HOOKS="$here/hooks.py" "$venv/bin/schemathesis" --config-file "$here/schemathesis.toml" run "$url/openapi.json" \
    --header "Authorization: Bearer $token" ${SEED:+--seed "$SEED"}
