"""Takes the tour of the README apart: files that it shows, and the commands between them.

A block that begins with `# NAME.py` is that file; blocks of `sh` are commands.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path


def main(readme: str, target: str) -> None:
    text = Path(readme).read_text("utf-8")
    tour = text.split("## Tour", 1)[1].split("\n## ", 1)[0]
    folder, commands = Path(target), []
    folder.mkdir(parents=True)
    for language, block in re.findall(r"```(\w+)\n(.*?)```", tour, re.DOTALL):
        if language == "sh":
            commands.append(block)
        elif name := re.match(r"# ([\w/]+\.py)\n", block):
            (folder / name[1]).write_text(block, "utf-8")
    (folder / "commands.sh").write_text("\n".join(commands), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
