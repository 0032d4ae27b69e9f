"""Drives LocalAgent, unmodified: what it shows, and what it asks of the model, here and under the host it was written for.

    python local_agent.py GREENROOM PLUGINS [--newer] [--langbot PYTHON]
"""

import json
import pathlib
import re
import sys
import tempfile
import threading

from fakes.mcp import Mcp
from fakes.openai import Openai, is_summary, text_of
from hosts.greenroom import Greenroom
from hosts.langbot import OWN_ERROR, Langbot
from official import arguments, environment, sources
from table import FILE

PLUGIN = "langbot-team/LocalAgent"
GRANT = {"models": ["m", "broken"], "tools": ["box.*"], "history": "conversation", "artifacts": "conversation",
         "state": ["conversation", "actor", "runner"]}
PROMPT = [{"role": "system", "content": "You are short."}]
SMALL = {"context-window-tokens": 2000, "context-reserve-tokens": 400, "context-keep-recent-tokens": 300,
         "context-summary-tokens": 200}


def config(primary, fallbacks, **more):
    return {"model": {"primary": primary, "fallbacks": fallbacks}, "prompt": PROMPT, "timeout": 60, **more}


class Stage:
    def __init__(self, host_of, source, python):
        self.model, self.tools = Openai(), Mcp()
        models = {"m": (self.model.url, "m"), "broken": (self.model.url, "broken")}
        self.host = host_of(models, {"box": self.tools.url})
        for name, settings, queue in [("local", config("m", []), "serial"),
                                      ("fallback", config("broken", ["m"]), "serial"),
                                      ("primary", config("m", ["broken"]), "serial"),
                                      ("small", config("m", [], **SMALL), "serial"),
                                      ("steered", config("m", []), "steer")]:
            self.host.add(name, source, PLUGIN, python, settings, GRANT, queue=queue)
        self.host.start()

    def play(self, agent, conversation, text, **given):
        self.model.requests.clear()
        played = self.host.play(agent, f"{agent}-{conversation}", text, **given)
        return played, self.model.json_bodies()


def messages(requests):
    """What the model was told, without what differs from run to run and from host to host.

    LangBot's history lacks the answers of plugins that stream, and it leaves files out of what a model is told."""
    told = []
    for request in requests:
        for message in request["messages"]:
            content = message.get("content") or ""
            if message["role"] == "assistant" and not message.get("tool_calls"):
                continue
            if isinstance(content, list):
                content = [part.get("text") or part["type"] for part in content]
                # One text is the same in both forms; what the plugin writes about attachments has the host's names.
                content = [part for part in content if part != "file" and not part.startswith('{"type": "langbot_input')]
                content = content[0] if len(content) == 1 else content
            # A tool has the name of its server before its own here.
            calls = [call["function"]["name"].split("_")[-1] for call in message.get("tool_calls") or []]
            told.append([message["role"], re.sub(r"[0-9a-f-]{32,36}|call_\w+", "…", json.dumps(content)), calls])
        told.append("---")
    return told


def both(stage):
    """(cell, whether it worked, what to compare)."""
    played, asked = stage.play("local", "one", "hi")
    yield "text", played.answers == ["turn 1 pictures 0"] or played, (played.answers, messages(asked))
    played, asked = stage.play("local", "one", "a long one")
    yield "streamed", played.streamed() and played.answers[-1].endswith("word end") or played, (played.answers, messages(asked))
    played, asked = stage.play("local", "one", "again")
    yield "history", played.answers == ["turn 3 pictures 0"] or played, (played.answers, messages(asked))
    played, asked = stage.play("local", "two", "use the tool")
    yield "tool", played.answers[-1:] == ["1 outcomes, 1 pong"] or played, (played.answers, messages(asked))
    played, asked = stage.play("local", "two", "and now")
    yield "history after a tool", played.answers == ["turn 2 pictures 0"] or played, (played.answers, messages(asked))
    stage.tools.most = 0
    played, asked = stage.play("local", "three", "use all tools")
    worked = played.answers[-1:] == ["3 outcomes, 3 pong"] and stage.tools.most
    yield "tools in parallel", worked == 3 or (worked, played), (played.answers, messages(asked))
    played, asked = stage.play("fallback", "one", "hi")
    models = [request["model"] for request in asked]
    yield "fallback", played.answers == ["turn 1 pictures 0"] and models[-1] == "m" or (played, models), None
    played, asked = stage.play("primary", "two", "cut")
    models = {request["model"] for request in asked}
    yield "no fallback after a chunk", models == {"m"} or (played, models), None
    played, asked = stage.play("local", "five", "see", picture=True)
    yield "picture in", played.answers == ["turn 1 pictures 1"] or played, (played.answers, messages(asked))
    played, asked = stage.play("local", "five", "what was it")
    yield "picture in history", bool(played.answers), (played.answers, messages(asked))
    played, asked = stage.play("local", "six", "read", file=FILE)
    yield "file in", bool(played.answers), (played.answers, messages(asked))
    played, asked = stage.play("local", "seven", "break")
    yield "error", played.status in ("failed", "shown") and played.answers != ["turn 1 pictures 0"] or played, None
    yield "compaction", compaction(stage), None


def compaction(stage):
    """Sixty turns in a small window: the model is never told more than fits, and a summary stands for the rest."""
    summaries, longest = 0, 0
    for turn in range(60):
        played, asked = stage.play("small", "long", f"turn {turn}: " + "some words to remember " * 12)
        if not played.answers or not played.answers[-1].startswith("turn "):
            return turn, played
        summaries += sum(is_summary(request) for request in asked)
        last = [request for request in asked if not is_summary(request)][-1]
        longest = max(longest, len(json.dumps(last["messages"])))
        recalled = any("summary" in text_of(message).lower() for message in last["messages"][1:])
    # Each summary continues the one before, from its checkpoint: far fewer than the turns after the first.
    return summaries > 0 and recalled and longest < 12_000 and summaries < 59 or (summaries, recalled, longest)


def ours(stage):
    """What only this host can be asked over HTTP."""
    host = stage.host
    stage.model.requests.clear()
    held = host.cancel("local", "local-held", "wait", lambda: stage.model.requests)
    after = stage.play("local", "after", "hi")[0].answers
    yield "cancel", (held.status, after) == ("cancelled", ["turn 1 pictures 0"]) or (held, after), None
    stage.model.requests.clear()
    first = host.send("steered", "steered", "use all tools")
    host.wait(lambda: stage.model.requests, "the model is not asked")
    host.send("steered", "steered", "and say hi")
    view = host.ended(first)
    told = json.dumps([request["messages"] for request in stage.model.json_bodies()])
    runs = len({result["run_id"] for result in host.read(view, "steered").results})
    yield "steering", (view["status"], "and say hi" in told, runs) == ("completed", True, 1) or (view, told), None


def run(stage):
    table = {}
    steps = [both, ours] if isinstance(stage.host, Greenroom) else [both]
    try:
        for step in steps:
            for cell, worked, compared in step(stage):
                table[cell] = (worked, compared)
                print(f"{stage.host.name:10} LocalAgent {cell:26} {'yes' if worked is True else f'NO {str(worked)[:700]}'}", flush=True)
    finally:
        stage.host.end()
    return table


def main():
    given = arguments().parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = given.keep or pathlib.Path(folder)
        sdk, source_of = sources(given, folder)
        python, source = environment(sdk, folder, []), source_of("langbot-local-agent")
        for name in ("ours", "theirs"):
            (folder / name).mkdir()
        table = run(Stage(lambda models, tools: Greenroom(given.greenroom.resolve(), folder / "ours", models, tools),
                          source, python))
        failed = [cell for cell, (worked, _) in table.items() if worked is not True]
        if given.langbot:
            theirs = run(Stage(lambda models, tools: Langbot(given.langbot.absolute(), folder / "theirs", models, tools),
                               source, python))
            for cell, (_, one) in table.items():
                other = theirs.get(cell, (None, None))[1]
                if other and other[0] in ([], [OWN_ERROR]):
                    print(f"{cell}: not compared, LangBot did not answer")
                elif one and other and one != other:
                    failed.append(f"{cell}\n  ours   {json.dumps(one)}\n  theirs {json.dumps(other)}")
        for one in failed:
            print("FAILS", one)
        return 1 if failed else 0


if __name__ == "__main__":
    threading.excepthook = lambda *_: None
    sys.exit(main())
