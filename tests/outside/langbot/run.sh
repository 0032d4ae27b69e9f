#!/bin/sh
# Runs a plugin that the published LangBot SDK makes from its own templates. The official plugins are in no package
# index: `make langbot PLUGINS=DIR` drives them from checkouts. The one argument is the path of the `greenroom` binary.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-$here/../../../target}
program=${1:-$target/debug/greenroom}
# `tests/prepare.sh` installs it.
python=$HOME/.cache/greenroom/langbot-0.7.18/bin/python

PYTHONDONTWRITEBYTECODE=1 "$python" "$here/template.py" "$program"
