"""How runs end, whatever their code does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from greenroom_sdk import (
    Api,
    InvalidPlugin,
    Manifest,
    NotFound,
    Plugin,
    Result,
    RunCtx,
    RunFailure,
    Runner,
    action,
    artifact,
    completed,
    delta,
    failed,
    message,
    other,
    state,
    testing,
    tool_completed,
    tool_started,
)
from subjects import code_of, plugin_of


def test_a_class_is_a_runner() -> None:
    class Parrot(Runner):
        manifest = Manifest("parrot", label="Parrot", permissions={"tools": ["call"]})

        async def run(self, ctx: RunCtx, api: Api) -> AsyncIterator[Result]:
            yield message(f"{ctx.text}, {ctx.config['tone']}, attempt {ctx.attempt}")

    plugin = Plugin("tests", "birds").add(Parrot())
    ran = testing.run(plugin, "hi", {"tone": "dry"})
    assert ran.text == "hi, dry, attempt 1"
    manifest, _ = plugin.checked().runners["plugin:tests/birds/parrot"]
    assert manifest.capabilities.tool_calling
    assert manifest.permissions.tools == ["call"]


def test_a_coroutine_sends_by_its_context() -> None:
    async def run(ctx: RunCtx) -> None:
        await ctx.delta("one ")
        await ctx.delta("two")
        await ctx.message("one two")
        ctx.set_usage({"input_tokens": 3})

    ran = testing.run(plugin_of(run))
    assert ran.types == ["message.delta", "message.delta", "message.completed", "run.completed"]
    assert ran.usage == {"input_tokens": 3}


def test_every_result_has_a_function_and_passes_the_hosts_checks() -> None:
    async def run(ctx: RunCtx) -> AsyncIterator[Result]:
        yield delta("a", message_id="m1")
        yield message([{"type": "text", "text": "a"}], message_id="m1", metadata={"x": 1})
        yield tool_started("c1", "add", {"a": 1})
        yield tool_completed("c1", "add", 2)
        yield tool_completed("c2", "add", error="overflow")
        yield artifact(b"bytes", name="a.bin", mime_type="application/octet-stream")
        yield state("conversation", "topic", "tea")
        yield action("message.send", payload={"text": "hi"})
        yield other("custom.type", {"anything": True})
        yield completed("length", usage={"output_tokens": 1})

    ran = testing.run(plugin_of(run))
    assert ran.results[5].data["content_base64"] == "Ynl0ZXM="
    assert ran.results[1].data == {
        "message": {
            "role": "assistant",
            "content": [{"type": "text", "text": "a"}],
            "message_id": "m1",
            "metadata": {"x": 1},
        }
    }
    assert ran.results[-1].data == {"finish_reason": "length"}
    assert [result.sequence for result in ran.results] == list(range(1, 11))


def test_an_exception_fails_its_run_with_a_traceback_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    async def run(ctx: RunCtx) -> AsyncIterator[Result]:
        yield delta("so far ")
        raise ValueError("the voice is gone")

    ran = testing.run(plugin_of(run))
    assert code_of(ran) == ("runner.error", "ValueError: the voice is gone")
    assert ran.types == ["message.delta", "run.failed"]
    told = capsys.readouterr().err
    assert "run run-1 failed" in told
    assert 'raise ValueError("the voice is gone")' in told


def test_a_failure_keeps_its_code_and_whether_to_try_again(capsys: pytest.CaptureFixture[str]) -> None:
    async def run(ctx: RunCtx) -> AsyncIterator[Result]:
        yield delta("x")
        raise RunFailure("weather.no_station", "there is none", retryable=True)

    ran = testing.run(plugin_of(run))
    assert ran.error is not None
    assert (ran.error.code, ran.error.retryable) == ("weather.no_station", True)
    assert capsys.readouterr().err == ""


def test_a_refusal_of_the_host_that_nobody_catches_keeps_its_code() -> None:
    async def run(ctx: RunCtx, api: Api) -> AsyncIterator[Result]:
        await api.events.get("e1")
        yield message("never")

    host = testing.Host().on("events.get", lambda params: testing.Refuse("not_found", "there is none"))
    assert code_of(host.run(plugin_of(run))) == ("not_found", "there is none")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ("text", "expected a result, got str; `yield delta(text)`"),
        ({"type": "message.delta"}, "expected a result, got dict"),
        (None, "expected a result, got NoneType"),
        (other("x", {"value": float("nan")}), "the data of `x` is not JSON"),
        (other("x", {"value": object()}), "object has no JSON form"),
        (other("x", {"value": "\ud800"}), "the data of `x` is not JSON"),
    ],
)
def test_what_is_no_result_fails_the_run_and_says_what_to_write(wrong: Any, sentence: str) -> None:
    async def run(ctx: RunCtx) -> AsyncIterator[Result]:
        yield wrong

    code, text = code_of(testing.run(plugin_of(run)))
    assert code == "runner.error"
    assert sentence in str(text)


def test_a_result_that_the_host_would_drop_is_refused_where_it_is_made() -> None:
    async def run(ctx: RunCtx) -> AsyncIterator[Result]:
        yield state("conversation", "", 1)

    code, text = code_of(testing.run(plugin_of(run)))
    assert (code, text) == ("runner.error", "StateUpdated is not valid: `key` must have 1 to 256 bytes")


def test_a_result_too_large_for_the_wire_fails_its_own_run() -> None:
    async def run(ctx: RunCtx) -> AsyncIterator[Result]:
        yield message("x" * (9 * 1024 * 1024))

    assert code_of(testing.run(plugin_of(run)))[0] == "payload_too_large"


def test_a_code_that_is_none_is_told_and_replaced() -> None:
    async def run(ctx: RunCtx) -> AsyncIterator[Result]:
        yield delta("x")
        raise RunFailure("two words", "oops \udcff")

    code, text = code_of(testing.run(plugin_of(run)))
    assert code == "runner.error"
    assert "oops ?" in str(text)
    assert "'two words'" in str(text)


def test_what_comes_after_the_terminal_reaches_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    closed = []

    async def run(ctx: RunCtx) -> AsyncIterator[Result]:
        try:
            yield completed()
            yield delta("late")
        finally:
            closed.append(True)

    ran = testing.run(plugin_of(run))
    assert ran.types == ["run.completed"]
    assert closed == [True]
    assert "yielded after the end of the run" in capsys.readouterr().err


def test_an_exception_after_the_terminal_is_told_on_stderr_alone(capsys: pytest.CaptureFixture[str]) -> None:
    async def run(ctx: RunCtx) -> AsyncIterator[Result]:
        yield failed("own.code", "no")
        raise KeyError("late")

    ran = testing.run(plugin_of(run))
    assert code_of(ran) == ("own.code", "no")
    assert "run run-1 failed after its end" in capsys.readouterr().err


def test_an_exception_in_the_cleanup_does_not_hide_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    async def run(ctx: RunCtx) -> AsyncIterator[Result]:
        try:
            yield completed("length")
            yield delta("late")
        finally:
            raise OSError("cannot tidy up")

    ran = testing.run(plugin_of(run))
    assert ran.results[-1].data == {"finish_reason": "length"}
    assert "failed while it was closed" in capsys.readouterr().err


def test_cancelling_raises_cancelled_error_where_the_runner_waits() -> None:
    seen: list[str] = []

    async def run(ctx: RunCtx) -> AsyncIterator[Result]:
        yield delta("begun")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise
        finally:
            seen.append("tidied")

    ran = testing.Host().cancel_when(lambda ran: bool(ran.results)).run(plugin_of(run))
    assert code_of(ran) == ("cancelled", "the run was cancelled")
    assert seen == ["cancelled", "tidied"]


def test_a_runner_that_swallows_the_cancellation_says_nothing_more() -> None:
    async def run(ctx: RunCtx) -> AsyncIterator[Result]:
        yield delta("begun")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass
        yield delta("I go on")

    ran = testing.Host().cancel_when(lambda ran: bool(ran.results)).run(plugin_of(run))
    assert ran.types == ["message.delta", "run.failed"]
    assert code_of(ran)[0] == "cancelled"


def test_a_run_that_does_not_end_is_left_behind_after_the_grace(capsys: pytest.CaptureFixture[str]) -> None:
    async def run(ctx: RunCtx) -> AsyncIterator[Result]:
        yield delta("begun")
        for _ in range(2):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                pass

    ran = testing.Host().cancel_when(lambda ran: bool(ran.results)).run(plugin_of(run, cancel_grace_s=0.05))
    assert code_of(ran)[0] == "cancelled"
    assert "did not end 0.05 s after it was cancelled" in capsys.readouterr().err


def test_a_tight_loop_leaves_room_for_others() -> None:
    async def run(ctx: RunCtx) -> AsyncIterator[Result]:
        others = 0

        async def count() -> None:
            nonlocal others
            while True:
                others += 1
                await asyncio.sleep(0)

        task = asyncio.ensure_future(count())
        for _ in range(320):
            yield delta("x")
        task.cancel()
        yield message(str(others >= 10))

    assert testing.run(plugin_of(run)).text == "True"


def test_a_call_after_the_end_of_the_run_is_refused() -> None:
    kept: list[Api] = []

    async def run(ctx: RunCtx, api: Api) -> AsyncIterator[Result]:
        kept.append(api)
        yield message("done")

    async def scenario() -> str:
        await testing.Host().with_memory().run_async(plugin_of(run))
        try:
            await kept[0].state.get("conversation", "k")
        except Exception as error:
            return str(error)
        return ""

    assert asyncio.run(scenario()) == "the run has ended and cannot call `state.get` (unauthorized)"


@pytest.mark.parametrize(
    ("author", "name", "runner", "sentence"),
    [
        ("ac me", "x", "default", "not a runner id of the form `plugin:author/name/runner`"),
        ("acme", "..", "default", "not a runner id"),
        ("acme", "x", "助手", "not a runner id"),
    ],
)
def test_a_plugin_with_a_wrong_name_is_refused(author: str, name: str, runner: str, sentence: str) -> None:
    plugin = Plugin(author, name)

    @plugin.runner(runner)
    async def run(ctx: RunCtx) -> AsyncIterator[Result]:
        yield message("x")

    with pytest.raises(InvalidPlugin, match=sentence):
        plugin.checked()


def test_a_plugin_is_refused_with_what_is_wrong_with_it() -> None:
    with pytest.raises(InvalidPlugin, match="offers no runner and no tool"):
        Plugin("a", "b").checked()
    plugin = Plugin("a", "b")

    async def one(ctx: RunCtx) -> AsyncIterator[Result]:
        yield message("x")

    def plain(ctx: RunCtx) -> Any:
        yield message("x")

    async def three(ctx: RunCtx, api: Api, more: int) -> AsyncIterator[Result]:
        yield message("x")

    plugin.runner()(one)
    with pytest.raises(InvalidPlugin, match="`default` is defined twice"):
        plugin.runner()(one)
    with pytest.raises(InvalidPlugin, match="must be written with `async def`"):
        plugin.runner("plain")(plain)
    with pytest.raises(InvalidPlugin, match="it takes 3 parameters"):
        plugin.runner("three")(three)  # type: ignore[type-var]
    wrong: Any = {"models": ["train"]}
    plugin.runner("wrong", permissions=wrong)(one)
    with pytest.raises(InvalidPlugin, match=r"permissions.models.0"):
        plugin.checked()


def test_errors_are_typed() -> None:
    error = NotFound("there is none", details={"id": "x"})
    assert (error.code, error.retryable, error.details) == ("not_found", False, {"id": "x"})
