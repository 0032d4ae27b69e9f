#!/bin/sh
# The model gateway with the official clients of OpenAI, Anthropic and Google, in front of every provider's wire.
# The one argument is the path of the `greenroom` binary.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-$here/../../../target}
program=${1:-$target/debug/greenroom}
runners=$here/../../../crates/cli/tests/host/runners
# The same clients as those of the scripted models.
venv=$target/outside/models-venv
wanted=$venv/installed.txt

if ! cmp -s "$here/requirements.txt" "$wanted"; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
    cp "$here/requirements.txt" "$wanted"
fi

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

"$program" dev model-server --script "$here/script.toml" --log "$work/requests" >"$work/url" &
started=$!
# The line appears once the server listens.
until [ -s "$work/url" ]; do
    kill -0 "$started" || exit 1
    sleep 0.05
done
models=$(cat "$work/url")

# A key that must appear nowhere but at the provider.
canary=sk-canary-7d1f0a93c4
mkdir "$work/puppet"
printf '%s\n' "$canary" >"$work/key"
sed "s|PUPPET|$runners/puppet.py|" "$here/greenroom.toml" >"$work/greenroom.toml"
for provider in openai openai-responses anthropic gemini ollama; do
    case $provider in openai*) path=/v1 ;; *) path= ;; esac
    cat >>"$work/greenroom.toml" <<END

[models.$provider]
provider = "$provider"
model = "scripted-1"
base_url = "$models$path"
allow_private = true
api_key = { file = "key" }
retries = 0

[agents.of-$provider]
runner = "plugin:test/puppet/main"
events = []
grant = { models = ["$provider"] }
END
done

(cd "$work" && exec "$program" serve --config greenroom.toml --data data --listen 127.0.0.1:0 \
    >"$work/log" 2>&1) &
host=$!
started="$started $host"
# The file appears once the host is ready.
until [ -s "$work/data/host.json" ]; do
    kill -0 "$host" || { cat "$work/log"; exit 1; }
    sleep 0.05
done

url=$("$venv/bin/python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["url"])' "$work/data/host.json")
cd "$work"
"$venv/bin/python" "$here/clients.py" "$url" "$(cat "$work/data/admin-token")"

# The provider got the key; nothing else did.
if grep -rl "$canary" "$work/log" "$work/puppet"; then
    echo "the key of a provider was found" >&2
    exit 1
fi
