#!/bin/sh
# Clients that `openapi-python-client` and `openapi-typescript` generate from /openapi.json with their default options:
# they are complete, their types are consistent, and they send an event. The one argument is the path of the
# `greenroom` binary.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-$here/../../../target}
program=${1:-$target/debug/greenroom}
folder=$target/outside/generated
venv=$folder/venv

mkdir -p "$folder"
if ! cmp -s "$here/requirements.txt" "$venv/installed.txt"; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
    cp "$here/requirements.txt" "$venv/installed.txt"
fi
if ! cmp -s "$here/package.json" "$folder/installed.json"; then
    rm -rf "$folder/node_modules" "$folder/package-lock.json"
    cp "$here/package.json" "$folder/package.json"
    (cd "$folder" && npm install --no-audit --no-fund --loglevel=error)
    cp "$here/package.json" "$folder/installed.json"
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

(cd "$work" && exec "$program" serve --data data --listen 127.0.0.1:0 >"$work/log" 2>&1) &
host=$!
# The file appears once the host is ready.
until [ -s "$work/data/host.json" ]; do
    kill -0 "$host" || { cat "$work/log"; exit 1; }
    sleep 0.05
done
url=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["url"])' "$work/data/host.json")
token=$(cat "$work/data/admin-token")

cd "$folder"
rm -rf python api.d.ts
# A part that it does not understand is a warning.
PATH="$venv/bin:$PATH" "$venv/bin/openapi-python-client" generate --url "$url/openapi.json" --output-path python \
    --fail-on-warning
cp "$here/send.py" python/
(cd python && "$venv/bin/mypy" --no-error-summary greenroom_client send.py && "$venv/bin/python" send.py "$url" "$token")

cp "$here/send.ts" .
npx openapi-typescript "$url/openapi.json" -o api.d.ts
npx tsc --strict --target es2022 --module nodenext send.ts
node send.js "$url" "$token"
