"""Drives the official plugins under a real host, with fakes of their services, and prints what worked.

    python official.py GREENROOM PLUGINS [--newer] [--langbot PYTHON] [--only NAME,…]

GREENROOM is the binary. PLUGINS is a folder with checkouts of `langbot-plugin-sdk` (branch `dev/4.11.x`),
`langbot-agent-runner` and `langbot-local-agent`; nothing of them is changed: the plugins are copied.
With `--newer` the copies get the names of the newer dialect and run on the published SDK; a plugin that is in a checkout
of `langbot-plugins` runs from there, as it is.
PYTHON has the host that they were written for; what it shows and asks is then compared.
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from fakes.mcp import Mcp
from fakes.tls import CERTIFICATE, Behind
import guards
import parts
from hosts.greenroom import Greenroom
from hosts.langbot import OWN_ERROR, Langbot
from newer import renamed
from table import CELLS, FILE, ROWS, Cli, asked, comparable, forget, free_port

# Where a plugin has another folder in `langbot-plugins`.
NEWER_FOLDERS = {"langbot-local-agent": "LocalAgent"}
# The SDK of the newer dialect, as `tests/prepare.sh` installs it.
PUBLISHED = "0.7.18"
HERE = pathlib.Path(__file__).parent
# Where the other host does less, or otherwise. It keeps the answers of plugins that send chunks only out of the history,
# and its published version shows a message twice that is in the end of the run again, and loses inline pictures.
CHUNKS_ONLY = [(name, "history") for name in ("n8n", "dify-chat", "dify-agent", "dify-workflow", "coze", "langflow")]
TWICE = [(name, cell) for name in ("claude-code", "codex") for cell in ("text", "state", "tool", "history")]
PICTURES = [(name, "picture") for name in ("dify-chat", "dify-agent", "dify-workflow", "coze", "deerflow", "acp")]
# Its attachments have no type, so that Dify gets a picture as a document.
DOCUMENTS = [(name, "picture") for name in ("dify-chat", "dify-agent", "dify-workflow")]
KNOWN = {False: CHUNKS_ONLY + DOCUMENTS, True: CHUNKS_ONLY + TWICE + PICTURES}
GRANT = {"tools": ["box.*"], "history": "conversation", "state": ["conversation", "actor", "runner"],
         "artifacts": "conversation"}


def environment(sdk, folder, rows):
    """An interpreter with this SDK and what the plugins need."""
    python = folder / "venv/bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        needed = {"httpx", "pyjwt", "aiohttp"}.union(*(row.requirements for row in rows))
        subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", sdk, *sorted(needed)],
                       check=True)
    return python


def sources(given, folder):
    """The SDK, and where a plugin's copy comes from."""
    checkouts = given.plugins.resolve()
    if not given.newer:
        return checkouts / "langbot-plugin-sdk", lambda path: checkouts / path
    made = {}

    def source(path):
        own = checkouts / "langbot-plugins/Runner" / NEWER_FOLDERS.get(path, pathlib.Path(path).name)
        if own.exists():
            return own
        if path not in made:
            made[path] = renamed(checkouts / path, folder / "newer" / path)
        return made[path]

    return f"langbot-plugin=={PUBLISHED}", source


def identity(source):
    """The author and the name in a plugin's manifest."""
    metadata = (source / "manifest.yaml").read_text().partition("\nmetadata:\n")[2]
    return "/".join(re.search(rf"^  {key}: (\S+)$", metadata, re.M)[1] for key in ("author", "name"))


class Stage:
    """One host with all rows on it, each with a fake of its own."""

    def __init__(self, host, source_of, python, rows):
        self.host, self.fakes, ports = host, {}, {}
        for row in rows:
            source = source_of(f"langbot-agent-runner/{row.folder or f'{row.name}-agent'}")
            folder = host.workspace(row.name)
            port = ports.setdefault(row.plugin, free_port())
            if isinstance(row.fake, str):
                fake, url = Cli(folder), ""
            else:
                fake = row.fake()
                fake.gateway, url = port, fake.url
            self.fakes[row.name] = fake
            config = row.config(url, folder, port, python)
            plugin = identity(source)
            host.add(row.name, source, plugin, python, config, GRANT, env=row.env(fake, folder))
            if isinstance(fake, Behind):
                shutil.copy(fake.certificate, folder / CERTIFICATE)
            if isinstance(row.fake, str):
                host.add(f"{row.name}-steered", source, plugin, python, config, GRANT, queue="steer")
                shutil.copytree(HERE / "fakes", folder / "fakes", dirs_exist_ok=True)

    def play(self, row, conversation, text, **given):
        """A turn, and what the service was asked in it."""
        fake = self.fakes[row.name]
        forget(fake)
        played = self.host.play(row.name, f"{row.name}-{conversation}", text, **given)
        return played, asked(fake)


def cells(stage, row):
    """(cell, whether it worked or what happened, what to compare)."""
    fake, host = stage.fakes[row.name], stage.host
    yield "loads", host.loads(row.name), None
    played, first = stage.play(row, "one", row.asks)
    yield "text", played.answers == [row.first or row.says] or played, (played.answers, first)
    yield "streamed", played.streamed() or played.shown, None
    again, second = stage.play(row, "one", "again")
    yield "state", row.state(first, second) or (first, second), (again.answers, second)
    if "tool" not in row.without:
        used, _ = stage.play(row, "two", "use the tool")
        yield "tool", used.answers == ["tool: echoed pong"] or used, (used.answers, [])
        read, _ = stage.play(row, "two", "read history")
        newest = "history: user read history < assistant tool: echoed pong < user use the tool"
        yield "history", read.answers == [newest] or read, (read.answers, [])
    if row.picture:
        seen, requests = stage.play(row, "three", "see", picture=True)
        yield "picture", row.picture(fake) and seen.answers == [row.says] or (seen, requests), (seen.answers, requests)
    if row.file:
        seen, requests = stage.play(row, "four", "read", file=FILE)
        yield "file", row.file(fake) and seen.answers == [row.says] or (seen, requests), (seen.answers, requests)
    failed, requests = stage.play(row, "five", "break")
    yield "error", failed.status in ("failed", "shown") and (bool(failed.error) or failed.status == "shown") or failed, None
    if isinstance(host, Greenroom):
        forget(fake)
        cancelled = host.cancel(row.name, f"{row.name}-six", "wait", lambda: asked(fake))
        after = stage.play(row, "seven", "hi")[0].answers
        if isinstance(fake, Cli):
            yield "steering", steering(host, row, fake), None
        yield "cancel", (cancelled.status, after) == ("cancelled", [row.says]) or (cancelled, after), None


def steering(host, row, fake):
    """A message that arrives while the agent works is its next turn, in the same run and the same session."""
    forget(fake)
    agent, conversation = f"{row.name}-steered", f"{row.name}-eight"
    first = host.send(agent, conversation, "wait for me")
    host.wait(lambda: any("prompt" in one for one in fake.asked), f"{agent} is not asked")
    host.send(agent, conversation, "one more")
    played = host.read(host.ended(first), conversation)
    prompts = [one["prompt"] for one in fake.asked if "prompt" in one]
    texts = [prompt if isinstance(prompt, str) else prompt[0]["text"] for prompt in prompts]
    found = (played.status, played.answers, texts)
    return found == ("completed", [row.says, row.says], ["wait for me", "one more"]) or found


def run(stage, rows):
    """Every cell of every row: {name: {cell: (worked, compared)}}."""
    table = {}
    for row in rows:
        found = table.setdefault(row.name, {})
        try:
            for cell, worked, compared in cells(stage, row):
                if cell not in row.without:
                    found[cell] = (worked, compared)
        except Exception as error:  # noqa: BLE001: one plugin must not hide the others
            found["stopped"] = (repr(error), None)
        marks = [f"{cell} {'yes' if worked is True else 'NO'}" for cell, (worked, _) in found.items()]
        print(f"{stage.host.name:10} {row.name:14} {', '.join(marks)}", flush=True)
        for cell, (worked, _) in found.items():
            if worked is not True:
                print(f"    {cell}: {str(worked)[:600]}", flush=True)
    return table


def differences(row, ours, theirs, known):
    """What the two hosts do not agree on, without what is known."""
    for cell in CELLS:
        (_, one), (_, other) = ours.get(cell, (None, None)), theirs.get(cell, (None, None))
        if one is None or other is None:
            continue
        if other[0] in ([], [OWN_ERROR]):
            print(f"{row.name} {cell}: not compared, LangBot did not answer")
            continue
        found = []
        if one[0] != other[0]:
            found.append(f"{row.name} {cell}: shown {one[0]}, by LangBot {other[0]}")
        requests, expected = comparable(one[1]), comparable(other[1])
        if requests != expected:
            found.append(f"{row.name} {cell}: asked {json.dumps(requests)}\n    by LangBot {json.dumps(expected)}")
        if (row.name, cell) not in known:
            yield from found
        elif not found:
            print(f"{row.name} {cell}: known as different, and the same here")


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("greenroom", type=pathlib.Path)
    parser.add_argument("plugins", type=pathlib.Path)
    parser.add_argument("--newer", action="store_true")
    parser.add_argument("--langbot", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path)
    return parser


def main():
    parser = arguments()
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    rows = [row for row in ROWS if not given.only or row.name in given.only.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        folder = given.keep or pathlib.Path(folder)
        sdk, source_of = sources(given, folder)
        python = environment(sdk, folder, rows)
        tools = Mcp()
        failed = []
        (folder / "ours").mkdir()
        # No plugin here calls a model; one gets its name.
        models = {parts.MODEL: (tools.url, "m")}
        host = Greenroom(given.greenroom.resolve(), folder / "ours", models, {"box": tools.url})
        if not given.only:
            own = HERE / "plugins-older"
            if given.newer:
                parts.add(host, renamed(own / "parts", folder / "newer/parts"), python)
            else:
                guards.add(host, own / "guards", python)
                parts.add(host, own / "parts", python)
        ours = played_on(host, source_of, python, rows)
        for name, found in ours.items():
            failed += [f"{name} {cell}" for cell, (worked, _) in found.items() if worked is not True]
        if given.langbot:
            (folder / "theirs").mkdir()
            compared = [row for row in rows if not row.alone]
            host = Langbot(given.langbot.absolute(), folder / "theirs", {}, {"box": tools.url})
            theirs = played_on(host, source_of, python, compared)
            for row in compared:
                failed += list(differences(row, ours[row.name], theirs[row.name], KNOWN[given.newer]))
        for one in failed:
            print("FAILS", one)
        return 1 if failed else 0


def played_on(host, source_of, python, rows):
    stage = Stage(host, source_of, python, rows)
    host.start()
    try:
        table = run(stage, rows)
        for name, own in (("guards", guards), ("parts", parts)):
            if name in getattr(host, "agents", {}):
                found = {cell: (worked, None) for cell, worked in own.cells(host)}
                told = ", ".join(f"{cell} {worked}" for cell, (worked, _) in found.items())
                print(f"{host.name:10} {name:14} {told}", flush=True)
                table[name] = found
        return table
    finally:
        host.end()


if __name__ == "__main__":
    sys.exit(main())
