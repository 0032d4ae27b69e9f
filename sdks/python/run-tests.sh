#!/usr/bin/env bash
# Checks the Python SDK: lints, types, tests, the wheel, and the README in a clean virtual environment.
# The environment is cached outside of the checkout. GREENROOM_BIN names the host to test with.
set -euo pipefail
cd "$(dirname "$0")"

cache="${XDG_CACHE_HOME:-$HOME/.cache}/greenroom"
venv="$cache/python-sdk"
python="$venv/bin/python"
unset PYTHONPATH
export MYPY_CACHE_DIR="$cache/python-sdk-mypy" RUFF_CACHE_DIR="$cache/python-sdk-ruff"

[ -x "$python" ] || python3 -m venv "$venv"

# Installs a requirements file once per content.
install() {
    local stamp="$venv/$1.installed"
    if ! cmp -s "$1" "$stamp"; then
        timeout "$2" "$python" -m pip install --quiet --disable-pip-version-check -r "$1" || return 1
        cp "$1" "$stamp"
    fi
}
install requirements-dev.txt 600
install requirements-examples.txt 900 || echo "note: the packages of the larger examples do not install; their tests are skipped" >&2

# The tests and their processes use the sources in place.
echo "$PWD/src" > "$("$python" -c 'import site; print(site.getsitepackages()[0])')/greenroom-sdk-sources.pth"

if [ -z "${GREENROOM_BIN:-}" ]; then
    for built in "${CARGO_TARGET_DIR:-../../target}/debug/greenroom" "${CARGO_TARGET_DIR:-../../target}/release/greenroom"; do
        if [ -x "$built" ]; then
            GREENROOM_BIN="$(realpath "$built")"
            break
        fi
    done
fi
export GREENROOM_BIN="${GREENROOM_BIN:-}"

"$venv/bin/ruff" check --quiet .
"$venv/bin/mypy" --no-error-summary src tests tools
if [ -e "$venv/requirements-examples.txt.installed" ]; then
    # AgentScope needs Python 3.11, the SDK 3.10.
    "$venv/bin/mypy" --no-error-summary --python-version 3.11 examples
fi
"$python" -m pytest "$@"
./tests/tour.sh "$cache"
