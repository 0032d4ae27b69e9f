#!/bin/sh
# Lists the tools of the MCP servers in `servers.tsv` and writes them into one JSON file.
# The servers are installed from npm and removed afterwards. Their tool lists are third-party text and stay in the
# target folder, outside git. A server that answered before is not started again.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-$here/../../target}
cache=$target/outside/tool-servers
mkdir -p "$cache"
node "$here/list.mjs" "$here/servers.tsv" "$cache" >"$cache/tools.json.new"
mv "$cache/tools.json.new" "$cache/tools.json"
echo "$cache/tools.json"
