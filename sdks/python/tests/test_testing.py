"""The test host is strict: a frame that a host would reject fails the test."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from greenroom_sdk import Plugin, RunCtx, testing
from greenroom_sdk.testing.frames import FrameChecks


def result(kind: str, data: Any, sequence: int = 1, run_id: str = "r1") -> dict[str, Any]:
    params = {"run_id": run_id, "type": kind, "data": data, "sequence": sequence}
    return {"jsonrpc": "2.0", "method": "run.result", "params": params}


DELTA = {"chunk": {"role": "assistant", "content": "x"}}


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (b"oops", "not JSON"),
        (b'{"jsonrpc": "2.0", "id": 1, "result": NaN}', "not JSON"),
        (b'"\xff"', "not JSON"),
        (b"[]", "not an object"),
        (b'{"id": 1, "result": {}}', "no `jsonrpc`"),
        (b'{"jsonrpc": "2.0", "id": 1}', "odd fields"),
        (b'{"jsonrpc": "2.0", "method": "x", "extra": 1}', "odd fields"),
    ],
)
def test_a_frame_that_is_none_is_refused(line: bytes, sentence: str) -> None:
    with pytest.raises(testing.WireViolation, match=sentence):
        FrameChecks("r1").parse(line)


@pytest.mark.parametrize(
    ("messages", "sentence"),
    [
        ([result("message.delta", {"chunk": {}})], "does not match the protocol"),
        ([result("message.delta", DELTA, run_id="r2")], "names the run `r2`"),
        ([result("message.delta", DELTA), result("message.delta", DELTA)], "`sequence` does not increase"),
        ([result("run.completed", {}), result("message.delta", DELTA, 2)], "came after `run.completed`"),
        ([{**result("message.delta", DELTA), "id": 1}], "is a notification"),
    ],
)
def test_a_result_that_no_host_takes_is_refused(messages: list[Any], sentence: str) -> None:
    checks = FrameChecks("r1")
    with pytest.raises(testing.WireViolation, match=sentence):
        for message in messages:
            checks.result(checks.parse(json.dumps(message).encode()))


def test_calls_and_the_end_are_checked() -> None:
    checks = FrameChecks("r1")
    call = {"jsonrpc": "2.0", "id": 1, "method": "state.get", "params": {"run_id": "r1", "scope": "actor", "key": "k"}}
    checks.call(call)
    with pytest.raises(testing.WireViolation, match="has the id 1"):
        checks.call(call)
    with pytest.raises(testing.WireViolation, match="unknown method `state.steal`"):
        checks.call({**call, "method": "state.steal"})
    with pytest.raises(testing.WireViolation, match="`scope`"):
        checks.call({**call, "id": 2, "params": {"run_id": "r1", "scope": "global", "key": "k"}})
    with pytest.raises(testing.WireViolation, match="without a terminal"):
        checks.answer({"jsonrpc": "2.0", "id": 1, "result": {}})


def test_a_run_that_does_not_end_fails_the_test() -> None:
    plugin = Plugin("tests", "endless")

    @plugin.runner()
    async def run(ctx: RunCtx) -> None:
        await ctx.delta("x")
        await asyncio.Event().wait()

    with pytest.raises(testing.WireViolation, match=r"did not end within 0.2 s; it sent message.delta"):
        testing.Host().run(plugin, timeout_s=0.2)


def test_a_method_without_an_answer_is_not_granted() -> None:
    plugin = Plugin("tests", "asking")

    @plugin.runner()
    async def run(ctx: RunCtx) -> None:
        await ctx.call("state.get", scope="actor", key="k")

    ran = testing.run(plugin)
    assert ran.error is not None
    assert (ran.error.code, ran.error.message) == ("unauthorized", "`state.get` is not granted to this run")


def test_memory_lasts_from_one_run_to_the_next() -> None:
    plugin = Plugin("tests", "counter")

    @plugin.runner()
    async def run(ctx: RunCtx) -> None:
        seen = await ctx.api.state.get("actor", "seen")
        await ctx.api.state.set("actor", "seen", (seen.value or 0) + 1)
        await ctx.message(str((seen.value or 0) + 1))

    host = testing.Host().with_memory()
    assert [host.run(plugin).text for _ in range(3)] == ["1", "2", "3"]
    assert host.memory.state["actor", "seen"] == (3, 3)
