#!/bin/sh
# Drives real harnesses through the host against a scripted model. Installs them with npm once, into the user's cache.
# Arguments: the path of the `greenroom` binary, then names of harnesses (default: goose, codex and claude).
set -eu

here=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-$here/../../../target}
program=${1:-$target/debug/greenroom}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- goose codex claude
folder=${HARNESSES:-${XDG_CACHE_HOME:-$HOME/.cache}/greenroom/harnesses}

package() {
    case $1 in
        goose) echo @aaif/goose-binary-linux-x64 ;;
        codex) echo @zed-industries/codex-acp ;;
        claude) echo @agentclientprotocol/claude-agent-acp ;;
        gemini) echo @google/gemini-cli ;;
        kimi) echo @moonshot-ai/kimi-code node@24 ;;
        opencode) echo opencode-ai ;;
        *) echo "error: there is no harness \`$1\`" >&2; exit 2 ;;
    esac
}

missing=
for name in "$@"; do
    for one in $(package "$name"); do
        [ -d "$folder/node_modules/${one%@24}" ] || missing="$missing $one"
    done
done
if [ -n "$missing" ]; then
    mkdir -p "$folder"
    [ -f "$folder/package.json" ] || echo '{"private":true}' >"$folder/package.json"
    # shellcheck disable=SC2086
    npm install --prefix "$folder" --no-audit --no-fund --loglevel=error $missing
fi

for keys in ${KEYS:-own gateway}; do
    python3 "$here/harness.py" "$(realpath "$program")" "$folder/node_modules" "$keys" "$@"
done

# The wall around each session, from inside the fastest of them.
case " $* " in
    *" goose "*)
        python3 "$here/escapes.py" "$(realpath "$program")" "$folder/node_modules"
        python3 "$here/keys.py" "$(realpath "$program")" "$folder/node_modules"
        python3 "$here/crash.py" "$(realpath "$program")" "$folder/node_modules" "${GREENROOM_HARNESS_KILLS:-6}"
        ;;
esac
