#!/bin/sh
# Tests the model server with the official clients of OpenAI, Anthropic and Google.
# The one argument is the path of the `greenroom` binary.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-$here/../../../target}
program=${1:-$target/debug/greenroom}
venv=$target/outside/models-venv
wanted=$venv/installed.txt

if ! cmp -s "$here/requirements.txt" "$wanted"; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
    cp "$here/requirements.txt" "$wanted"
fi

work=$(mktemp -d)
server=
end() {
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    rm -rf "$work"
}
trap end EXIT
trap 'exit 130' INT TERM

"$program" dev model-server --script "$here/script.toml" --log "$work/requests" >"$work/url" &
server=$!
# The line appears once the server listens.
until [ -s "$work/url" ]; do
    kill -0 "$server" || exit 1
    sleep 0.05
done

"$venv/bin/python" "$here/clients.py" "$(cat "$work/url")"
