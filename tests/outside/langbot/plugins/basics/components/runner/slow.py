"""Writes a file, waits for a gate, and writes another file if it is cancelled before."""

import asyncio
import pathlib

from langbot_plugin.api.definition.components.runner.runner import Runner
from langbot_plugin.api.entities.builtin.provider.message import Message
from langbot_plugin.api.entities.builtin.runner import RunnerContext, RunnerResult


class Slow(Runner):
    async def run(self, ctx: RunnerContext):
        name = ctx.input.to_text()
        pathlib.Path(f"began-{name}").touch()
        try:
            while not pathlib.Path("gate").exists():
                await asyncio.sleep(0.02)
        except asyncio.CancelledError:
            pathlib.Path(f"stopped-{name}").touch()
            raise
        yield RunnerResult.run_completed(ctx.run_id, Message(role="assistant", content=name))
