"""Raises non-`Exception` errors: the input names where and which, such as `stream SystemExit`."""

import asyncio
import pathlib
import sys

from langbot_plugin.api.definition.components.runner.runner import Runner
from langbot_plugin.api.entities.builtin.provider.message import Message, MessageChunk
from langbot_plugin.api.entities.builtin.runner import RunnerContext, RunnerResult


class Unheard(BaseException):
    pass


async def raise_it(what: str) -> None:
    if what == "CancelledChild":
        child = asyncio.create_task(asyncio.sleep(60))
        child.cancel()
        await child
    if what == "SystemExit":
        sys.exit("that is enough")
    kinds = {kind.__name__: kind for kind in [asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, Unheard]}
    raise kinds[what]("that is enough")


class Raising(Runner):
    def run(self, ctx: RunnerContext):
        where, what = ctx.input.to_text().split()
        if where == "call":
            raise Unheard("that is enough")
        return getattr(self, where)(ctx, what)

    async def coroutine(self, ctx: RunnerContext, what: str):
        await raise_it(what)

    async def stream(self, ctx: RunnerContext, what: str):
        yield RunnerResult.message_delta(ctx.run_id, MessageChunk(role="assistant", content="so far "))
        await raise_it(what)

    async def beside(self, ctx: RunnerContext, what: str):
        """Raises in a task and in a callback, and continues."""
        task = asyncio.create_task(raise_it(what))
        asyncio.get_running_loop().call_soon(sys.exit, 3)
        await asyncio.sleep(0.05)
        yield RunnerResult.run_completed(ctx.run_id, Message(role="assistant", content=f"after {task.exception()!r}"))

    def iterated(self, ctx: RunnerContext, what: str):
        class Iterated:
            def __aiter__(self):
                sys.exit("that is enough")

        return Iterated()

    async def stopped(self, ctx: RunnerContext, what: str):
        """Raises when it is cancelled."""
        pathlib.Path("waits").touch()
        try:
            await asyncio.sleep(60)
        finally:
            pathlib.Path("stops").touch()
            await raise_it(what)
        yield RunnerResult.run_completed(ctx.run_id, Message(role="assistant", content="too late"))
