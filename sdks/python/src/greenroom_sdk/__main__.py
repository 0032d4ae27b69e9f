"""`python -m greenroom_sdk FILE`: serves the plugin in a file, with stdout redirected before the import.

Invariant: a file that cannot be imported ends with its traceback on stderr, and nothing on the wire.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from greenroom_sdk.plugin import Plugin
from greenroom_sdk.wire.guard import hold_stdout
from greenroom_sdk.wire.log import say, say_exception


def main() -> None:
    if len(sys.argv) < 2 or not Path(sys.argv[1]).is_file():
        say("usage: python -m greenroom_sdk FILE, where FILE has a `Plugin`")
        sys.exit(2)
    path, sys.argv = sys.argv[1], sys.argv[1:]
    hold_stdout()
    sys.path.insert(0, str(Path(path).resolve().parent))
    try:
        names = runpy.run_path(path, run_name="greenroom_runner")
    except Exception as error:
        say_exception(f"`{path}` cannot be imported", error)
        sys.exit(1)
    plugins = list({id(value): value for value in names.values() if isinstance(value, Plugin)}.values())
    if len(plugins) != 1:
        say(f"`{path}` must have one `Plugin` at its top level, it has {len(plugins)}")
        sys.exit(1)
    plugins[0].serve()


if __name__ == "__main__":
    main()
