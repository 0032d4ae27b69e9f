"""What the official plugins do not have: settings of the plugin, questions, and components that are not runners. The
plugin is our own, for the SDK of the older dialect; with the newer names it runs on the published one."""

import json

MODEL = "only"
GRANT = {"models": [MODEL], "tools": ["parts.*"]}


def add(host, folder, python):
    host.add("parts", folder, "greenroom-tests/parts", python, {}, GRANT)
    host.config = host.config.replace('dir = "parts"\n', 'dir = "parts"\nlistens = ["parts"]\n')
    host.config += ('[runners.parts.config]\nregion = "us"\n[agents.weather]\ncommands = ["weather"]\n'
                    'runner = "plugin:greenroom-tests/parts/commands"\n')


def cells(host):
    """(cell, whether it worked or what happened)."""
    yield "loads", host.loads("parts")
    plugin, runner = json.loads(host.play("parts", "p1", "settings").answers[0])
    yield "settings of the plugin", plugin == {"region": "us", "tone": "long"} or plugin
    yield "settings of the agent", runner == {"model": MODEL, "rounds": 5} or runner
    yield "question", question(host)
    played = host.play("parts", "p3", "add")
    yield "tool", played.answers == ['{"sum": 5}'] or played
    played = host.play("parts", "p4", "/weather in New York")
    yield "command", played.answers == ["sunny in New York"] or played
    yield "listener", listener(host)


def question(host):
    run = host.send("parts", "p2", "ask")
    asked = host.read(host.ended(run), "p2")
    answer = {"interaction_id": "order-1", "action_id": "order", "values": {"drink": "tea"}}
    back = host.call(f"/v1/runs/{run}/interactions", answer)
    answered = host.read(host.ended(back["run_id"]), "p2", len(asked.answers))
    found = (asked.answers, answered.answers)
    return found == (["Reply with a drink."], ['["order", {"drink": "tea"}]']) or found


def listener(host):
    """It is told of the messages of its agent in their order."""
    host.play("parts", "p5", "last")
    file = host.workspace("parts") / "heard.jsonl"
    last = ["responded", "last"]

    def heard():
        lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        return lines if last in lines else None
    told = host.wait(heard, "the listener is not told")
    expected = [["received", "u1", "settings"], ["received", "u1", "add"], ["responded", '{"sum": 5}'],
                ["received", "u1", "last"], last]
    return [one for one in told if one in expected] == expected or told
