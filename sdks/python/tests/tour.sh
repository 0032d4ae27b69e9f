#!/usr/bin/env bash
# Builds the wheel and runs the commands of the README in a clean virtual environment.
# Runs again only if the sources, the README or the template changed since the last success.
set -euo pipefail
cache="$1"
sdk="$(cd "$(dirname "$0")/.." && pwd)"
stamp="$cache/python-sdk-tour"
now="$(cd "$sdk" && find src README.md pyproject.toml tests/tour.sh ../../crates/sdk/templates/python-sdk -type f ! -name '*.pyc' -print0 |
    sort -z | xargs -0 sha256sum | sha256sum)"
if [ -e "$stamp" ] && [ "$(cat "$stamp")" = "$now" ]; then
    echo "tour: nothing changed since the last success"
    exit 0
fi

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
"$cache/python-sdk/bin/python" -m build --no-isolation --wheel --outdir "$folder/dist" "$sdk" > "$folder/build.log" 2>&1 ||
    { cat "$folder/build.log"; exit 1; }
wheel="$(echo "$folder"/dist/greenroom_sdk-*-py3-none-any.whl)"
"$cache/python-sdk/bin/python" -m zipfile -l "$wheel" > "$folder/wheel.log"
grep -q "greenroom_sdk/py.typed" "$folder/wheel.log"

# The blocks of the README's tour, in order: files, then commands.
"$cache/python-sdk/bin/python" "$sdk/tests/tour_blocks.py" "$sdk/README.md" "$folder/tour"
cd "$folder/tour"
mkdir bin
[ -z "${GREENROOM_BIN:-}" ] || ln -s "$GREENROOM_BIN" bin/greenroom
SDK="$wheel" PATH="$PWD/bin:$PATH" bash -euo pipefail commands.sh > output.log 2>&1 || { cat output.log; exit 1; }
grep -q "1 passed" output.log
[ -z "${GREENROOM_BIN:-}" ] || grep -q "failed: 0" output.log
echo "$now" > "$stamp"
echo "tour: the README works in a clean virtual environment"
