"""An exception fails its own run only."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator

import pytest

from greenroom_sdk import Result, RunCtx, RunFailure, delta, testing
from subjects import code_of, plugin_of


def test_an_exception_that_cannot_say_what_it_is_ends_the_run() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError("no words")

        __repr__ = __str__

    async def run(ctx: RunCtx) -> AsyncIterator[Result]:
        raise Mute
        yield

    async def leave(ctx: RunCtx) -> None:
        raise SystemExit(Mute())

    class Oops(RunFailure):
        def __init__(self, what: str) -> None:
            self.what = what

    async def fail(ctx: RunCtx) -> None:
        raise Oops("x")

    async def mutter(ctx: RunCtx) -> None:
        raise RunFailure("a.b", Mute())  # type: ignore[arg-type]

    assert code_of(testing.run(plugin_of(run))) == ("runner.error", "Mute")
    assert code_of(testing.run(plugin_of(fail))) == ("runner.error", "Oops")
    assert code_of(testing.run(plugin_of(mutter))) == ("a.b", "Mute")
    assert code_of(testing.run(plugin_of(leave))) == ("runner.error", "the runner called `sys.exit(Mute)`")


def test_sys_exit_ends_the_run_and_not_the_process() -> None:
    async def run(ctx: RunCtx) -> AsyncIterator[Result]:
        yield delta("x")
        sys.exit(3)

    assert code_of(testing.run(plugin_of(run))) == ("runner.error", "the runner called `sys.exit(3)`")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="it may be the user's own there")
def test_a_keyboard_interrupt_of_the_code_ends_the_run_and_not_the_process() -> None:
    async def run(ctx: RunCtx) -> None:
        raise KeyboardInterrupt

    assert code_of(testing.run(plugin_of(run))) == ("runner.error", "the runner raised KeyboardInterrupt")


def test_a_runner_that_cancels_itself_has_failed_and_says_where(capfd: pytest.CaptureFixture[str]) -> None:
    async def run(ctx: RunCtx) -> AsyncIterator[Result]:
        yield delta("x")
        raise asyncio.CancelledError

    assert code_of(testing.run(plugin_of(run))) == ("runner.error", "the runner cancelled itself")
    told = capfd.readouterr().err
    assert "CancelledError" in told
    assert "test_raising.py" in told
