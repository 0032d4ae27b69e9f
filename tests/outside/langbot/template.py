"""Runs a plugin as the published SDK makes it: its own command creates it from its templates and packs it.

    python template.py GREENROOM

Run it with the interpreter that has the SDK.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

from hosts.greenroom import Greenroom


def created(folder):
    """A plugin with a runner, unpacked from the package that the SDK builds."""
    command = pathlib.Path(sys.executable).parent / "lbp"
    run = lambda answers, where, *words: subprocess.run(  # noqa: E731
        [command, *words], cwd=where, input=answers, text=True, check=True, stdout=subprocess.DEVNULL)
    run("tests\nMade from the template\n", folder, "init", "made")
    run("default\nRepeats\n", folder / "made", "comp", "Runner")
    run("", folder / "made", "build")
    package = next((folder / "made").rglob("*.lbpkg"))
    with zipfile.ZipFile(package) as archive:
        archive.extractall(folder / "unpacked")
    return folder / "unpacked"


def cells(host):
    yield "loads", host.loads("made")
    yield "text", host.play("made", "c1", "hi").answers == ["Received: hi"]
    yield "two turns", host.play("made", "c1", "你好 🎈").answers == ["Received: 你好 🎈"]
    runs = [(number, host.send("made", f"many-{number}", f"n{number}")) for number in range(64)]
    answers = [host.read(host.ended(run), f"many-{number}").answers for number, run in runs]
    yield "64 conversations at once", answers == [[f"Received: n{number}"] for number, _ in runs]


def main(binary):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        source = created(folder)
        (folder / "host").mkdir()
        host = Greenroom(pathlib.Path(binary).resolve(), folder / "host", {}, {})
        host.add("made", source, "tests/made", sys.executable, {}, {})
        host.start()
        try:
            found = list(cells(host))
        finally:
            host.end()
        for cell, worked in found:
            print(f"langbot template: {cell:26} {'works' if worked is True else f'FAILS {worked}'}")
        return 0 if all(worked is True for _, worked in found) else 1


if __name__ == "__main__":
    os.environ.pop("GREENROOM_URL", None)
    sys.exit(main(*sys.argv[1:]))
