#!/bin/sh
# Asks the MCP servers of `servers.tsv` for their tools and writes all of them into one JSON file.
# The servers come from npm and go again once they have answered; what they said stays in the target folder,
# outside git, since the texts are other people's. A server that has answered before is not asked again.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-$here/../../target}
cache=$target/outside/tool-servers
mkdir -p "$cache"
node "$here/list.mjs" "$here/servers.tsv" "$cache" >"$cache/tools.json.new"
mv "$cache/tools.json.new" "$cache/tools.json"
echo "$cache/tools.json"
