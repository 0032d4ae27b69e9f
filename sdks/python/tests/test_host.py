"""Runners of this SDK under a real host: the binary, its store, its sandbox, its scripted model."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from processes import Process

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
WAIT_S = 60
OWN = 2
"""Number of built-in runners of the host."""


def binary() -> str:
    found = os.environ.get("GREENROOM_BIN") or shutil.which("greenroom")
    if not found:
        pytest.skip("there is no `greenroom` binary (GREENROOM_BIN)")
    return found


@contextmanager
def host(folder: Path, config: str, listen: str = "127.0.0.1:0") -> Iterator[Path]:
    (folder / "greenroom.toml").write_text(textwrap.dedent(config), "utf-8")
    log = (folder / "host.log").open("w")
    arguments = ["serve", "--config", "greenroom.toml", "--data", "data", "--listen", listen]
    serving = subprocess.Popen([binary(), *arguments], cwd=folder, stdout=log, stderr=subprocess.STDOUT)
    try:
        until = time.monotonic() + WAIT_S
        awaited = config.count("command = ")
        while (listed := told(folder, "runner", "list", "--json")).count('"ready"') < OWN + awaited:
            assert serving.poll() is None, (folder / "host.log").read_text()
            assert time.monotonic() < until, (folder / "host.log").read_text() + listed
            time.sleep(0.2)
        yield folder
    finally:
        serving.terminate()
        serving.wait(WAIT_S)
        log.close()


def told(folder: Path, *arguments: str) -> str:
    command = [binary(), *arguments, "--data", "data"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=WAIT_S)
    return done.stdout + done.stderr


def test_a_runner_keeps_state_and_answers_under_a_real_host(tmp_path: Path) -> None:
    (tmp_path / "parrot.py").write_text(
        textwrap.dedent(
            """
            from greenroom_sdk import Api, Plugin, RunCtx, Unauthorized, message
            plugin = Plugin("local", "parrot")

            @plugin.runner(permissions={"storage": ["binding"], "history": ["page"]})
            async def parrot(ctx: RunCtx, api: Api):
                seen = await api.state.get("actor", "seen")
                await api.state.set("actor", "seen", (seen.value or 0) + 1, if_version=seen.version)
                earlier = await api.history.page(limit=10)
                try:
                    await api.events.page()
                    refused = "no"
                except Unauthorized as error:
                    refused = error.code
                yield message(f"{ctx.text} {seen.value} {len(earlier.items)} {refused}")

            if __name__ == "__main__":
                plugin.serve()
            """
        ),
        "utf-8",
    )
    config = f"""
        [runners.parrot]
        command = ["{sys.executable}", "parrot.py"]
        paths = ["{sys.prefix}", "{EXAMPLES.parent}"]

        [agents.parrot]
        runner = "plugin:local/parrot/default"
        events = []
    """
    with host(tmp_path, config) as folder:
        first = told(folder, "send", "one", "--agent", "parrot", "--conversation", "c1", "--follow")
        second = told(folder, "send", "two", "--agent", "parrot", "--conversation", "c1", "--follow")
        assert "one None 0 unauthorized" in first, first
        assert "two 1 2 unauthorized" in second, second


def test_a_remote_runner_answers_and_comes_back_when_the_host_does(tmp_path: Path) -> None:
    token = "a-token-of-this-test"
    (tmp_path / "far.token").write_text(token)
    config = """
        [runners.far]
        token = { file = "far.token" }
        plugin = "tests/subject"

        [agents.far]
        runner = "plugin:tests/subject/default"
        events = []
    """
    source = """
        @plugin.runner()
        async def run(ctx):
            yield message(f"far away: {ctx.text}")
    """
    send = ["--agent", "far", "--conversation", "c1", "--follow"]
    with ExitStack() as stack:
        with host(tmp_path, config) as folder:
            url = json.loads((folder / "data/host.json").read_text())["url"]
            address = url.removeprefix("http://").rstrip("/")
            known = {"GREENROOM_URL": url, "GREENROOM_RUNNER_TOKEN": token}
            with Process(tmp_path, source, variables={**known, "GREENROOM_RUNNER_TOKEN": "wrong"}) as stranger:
                assert stranger.process.wait(WAIT_S) == 1
                line = stranger.wait_for_log("\n")
                assert line.startswith("greenroom-sdk: error: the host refused the runner's token: "), line
                assert "wrong" not in line
            runner = stack.enter_context(Process(tmp_path, source, variables=known))
            runner.wait_for_log(f"greenroom-sdk: connected to ws://{address} as tests/subject\n")
            with Process(tmp_path, source, variables=known) as second:
                second.wait_for_log("greenroom-sdk: the host refused the runner: runner `far` is connected already\n")
            assert "far away: one" in told(folder, "send", "one", *send)
        runner.wait_for_log("greenroom-sdk: the connection to the host was lost\n")
        with host(tmp_path, config, address) as folder:
            runner.wait_for_log(f"greenroom-sdk: reconnected to ws://{address} as tests/subject\n")
            assert "far away: two" in told(folder, "send", "two", *send)
        assert token not in runner.log


SCRIPT = """
[[rule]]
when = { offers = "dice.roll", tool_result = false }
answer = [{ call = "dice.roll", args = { sides = 6, count = 7 } }]

[[rule]]
when.result_of = "dice.roll"
answer = "The dice show {{last_tool_result}}"
"""

DICE = """
from greenroom_sdk import Plugin
plugin = Plugin("local", "dice")

@plugin.tool(risk="read")
async def roll(sides: int, count: int) -> dict[str, int]:
    "Rolls dice and gives their total"
    return {"total": sides * count}

if __name__ == "__main__":
    plugin.serve()
"""


@pytest.mark.parametrize("name", ["langgraph_agent", "agentscope_agent", "openai_agents_agent"])
def test_an_agent_uses_the_model_and_a_tool_of_a_real_host(tmp_path: Path, name: str) -> None:
    package = {"langgraph_agent": "langgraph", "agentscope_agent": "agentscope"}.get(name, "agents")
    pytest.importorskip(package, reason=f"`{package}` is not installed (requirements-examples.txt)")
    (tmp_path / "script.toml").write_text(SCRIPT, "utf-8")
    (tmp_path / "dice.py").write_text(DICE, "utf-8")
    paths = f'["{sys.prefix}", "{EXAMPLES.parent}"]'
    config = f"""
        [models.main]
        provider = "scripted"
        script = "script.toml"

        [runners.dice]
        command = ["{sys.executable}", "dice.py"]
        paths = {paths}

        [runners.agent]
        command = ["{sys.executable}", "{EXAMPLES / name}.py"]
        paths = {paths}

        [agents.agent]
        runner = "plugin:examples/{name.replace("_", "-")}/default"
        events = []

        [agents.agent.grant]
        models = ["main"]
        tools = ["dice.roll"]
    """
    with host(tmp_path, config) as folder:
        answer = told(folder, "send", "roll them", "--agent", "agent", "--conversation", "c1", "--follow")
        assert "The dice show" in answer, answer + (folder / "host.log").read_text()
        assert "42" in answer, answer
        assert "completed" in told(folder, "runs", "list")
