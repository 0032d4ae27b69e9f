#!/bin/sh
# Lets hostile programs try to escape from a real host, as root and as an ordinary user, and checks from outside what they
# reached. The first argument is the path of the `greenroom` binary; the others are options of `hostile.py`.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-$here/../../target}
program=${1:-$target/debug/greenroom}
[ $# -eq 0 ] || shift

exec python3 "$here/hostile.py" --binary "$program" "$@"
