#!/bin/sh
# The client scenarios of MCP's own conformance suite, with `greenroom serve` as the client.
# The one argument is the path of the `greenroom` binary; SCENARIO=NAME runs one scenario.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-$here/../../../target}
program=${1:-$target/debug/greenroom}
folder=$target/outside/mcp

mkdir -p "$folder"
if ! cmp -s "$here/package.json" "$folder/installed.json"; then
    rm -rf "$folder/node_modules" "$folder/package-lock.json"
    cp "$here/package.json" "$folder/package.json"
    (cd "$folder" && npm install --no-audit --no-fund --loglevel=error)
    cp "$here/package.json" "$folder/installed.json"
fi
cp "$here/client.mjs" "$folder/"

# The suite needs a newer Node than the system may have.
PATH=$folder/node_modules/.bin:$PATH
export GREENROOM_PROGRAM="$program"
export GREENROOM_RUNNERS="$here/../../../crates/cli/tests/host/runners"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
cd "$work"

# One at a time: each starts a host of its own. Those that are not scored for a version run as well.
scenarios() {
    conformance list --requirements "$1" |
        sed -n -e '/^Client scenarios/,/^$/s/^  - //p' -e 's/^ *- \(.*\) \[client\]$/\1/p' | sort -u
}

failed=0
for version in 2025-11-25 2026-07-28; do
    for scenario in ${SCENARIO:-$(scenarios "$version")}; do
        printf '%s %s: ' "$version" "$scenario"
        if conformance client --command "node $folder/client.mjs" --scenario "$scenario" \
            --spec-version "$version" --force --timeout 120000 \
            --expected-failures "$here/expected-failures.yml" >"$work/out" 2>&1; then
            echo ok
        else
            echo failed
            tail -60 "$work/out" | sed 's/^/    /'
            failed=1
        fi
    done
done
exit "$failed"
