"""The examples, against a scripted model, and as processes under `greenroom runner test`."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from greenroom_sdk import Plugin, testing

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
NEEDS = {"langgraph_agent": "langgraph", "agentscope_agent": "agentscope", "openai_agents_agent": "agents"}
AGENTS = sorted(NEEDS)
ALL = ["echo", "rag_answerer", *AGENTS]
ADD = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}


def example(name: str, monkeypatch: pytest.MonkeyPatch) -> Plugin:
    need_package(name)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    plugin: Plugin = importlib.import_module(name).plugin
    return plugin


def need_package(name: str) -> None:
    if name in NEEDS:
        reason = f"`{NEEDS[name]}` is not installed (requirements-examples.txt)"
        pytest.importorskip(NEEDS[name], reason=reason)


def test_echo_says_what_it_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = testing.run(example("echo", monkeypatch), "guten Tag")
    assert ran.text == "You said: guten Tag"
    assert ran.streamed == ran.text


def test_the_rag_answerer_gives_the_model_the_passages_and_names_its_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    passages = [
        {"content": "There are 30 days of leave.", "score": 0.9, "metadata": {"page": 3}},
        {"content": "The office opens at nine.", "score": 0.2},
    ]
    host = testing.Host(config={"top_k": 1}).knowledge("handbook", passages).model("main", ["30 days [1]"])
    ran = host.run(example("rag_answerer", monkeypatch), "How long is my leave?")
    assert ran.text == ran.streamed == "30 days [1]"
    assert ran.results[-2].data["message"]["metadata"] == {"sources": [{"page": 3}]}
    asked = ran.calls("models.stream")[0]["messages"]
    assert "[1] There are 30 days of leave." in asked[0]["content"]
    assert "nine" not in asked[0]["content"]
    assert asked[-1]["content"] == "How long is my leave?"


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_has_the_host_call_its_tool_and_answers_with_what_it_said(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns: list[Any] = [{"name": "add", "args": {"a": 20, "b": 22}}, "The sum is 42."]
    host = testing.Host().model("main", turns).tool("add", lambda a, b: a + b, description="adds", parameters=ADD)
    ran = host.run(example(name, monkeypatch), "20 + 22?")
    assert ran.error is None
    assert ran.text == "The sum is 42."
    assert ran.streamed == "The sum is 42."
    assert [call["parameters"] for call in ran.calls("tools.call")] == [{"a": 20, "b": 22}]
    first, second = (call for call in ran.calls("models.stream"))
    assert next(iter(first["tools"]))["tool_name"] == "add"
    answered = [one for one in second["messages"] if one["role"] == "tool"]
    assert [one["content"] for one in answered] == ["42"]
    assert second["messages"][-2]["tool_calls"][0]["args"] == {"a": 20, "b": 22}


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_that_is_cancelled_while_its_tool_runs_stops(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    host = testing.Host().model("main", [{"name": "slow", "args": {}}, "never said"])
    host.tool("slow", lambda: testing.Reply(never=True), parameters={"type": "object"})
    host.cancel_when(lambda ran: bool(ran.calls("tools.call")))
    ran = host.run(example(name, monkeypatch), "go")
    assert ran.error is not None
    assert ran.error.code == "cancelled"
    assert [request.method for request in ran.given_up] == ["tools.call"]
    assert "never said" not in ran.streamed


@pytest.mark.parametrize("name", [*AGENTS, "rag_answerer"])
def test_an_agent_without_a_model_says_so(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = testing.run(example(name, monkeypatch), "hi")
    assert ran.error is not None
    assert ran.error.code == "agent.no_model"


@pytest.mark.parametrize("name", ALL)
def test_greenroom_runner_test_passes(name: str) -> None:
    need_package(name)
    binary = os.environ.get("GREENROOM_BIN") or shutil.which("greenroom")
    if binary is None:
        pytest.skip("there is no `greenroom` binary (GREENROOM_BIN)")
    command = [binary, "runner", "test", "--timeout", "60", "--", sys.executable, str(EXAMPLES / f"{name}.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "failed: 0" in done.stdout
