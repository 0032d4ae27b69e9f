"""Ends as the input says."""

import asyncio
import os
import pathlib
import time

from langbot_plugin.api.definition.components.runner.runner import Runner
from langbot_plugin.api.entities.builtin.provider.message import Message, MessageChunk
from langbot_plugin.api.entities.builtin.runner import RunnerContext, RunnerResult


def wait_for_go():
    pathlib.Path("in-a-thread").touch()
    while not pathlib.Path("go").exists():
        time.sleep(0.01)


class Odd(Runner):
    async def run(self, ctx: RunnerContext):
        way = ctx.input.to_text()
        if way == "empty":
            return
        if way == "controlled":
            yield RunnerResult.run_failed(ctx.run_id, "the quota is used up", code="acme.quota", retryable=True)
            return
        if way == "malformed":
            yield RunnerResult(run_id=ctx.run_id, type="message.completed", data={"message": 5})
            yield RunnerResult(run_id=ctx.run_id, type="state.updated", data={"scope": "nowhere"})
            yield RunnerResult.message_completed(ctx.run_id, Message(role="assistant", content="still here"))
            yield RunnerResult.run_completed(ctx.run_id)
            return
        if way == "blocks":
            pathlib.Path("blocked").touch()
            while not pathlib.Path("go").exists():
                time.sleep(0.01)
            yield RunnerResult.run_completed(ctx.run_id, Message(role="assistant", content="went on"))
            return
        if way == "prints":
            print("text on standard output")
            print({"looks": "like json"}, flush=True)
            yield RunnerResult.run_completed(ctx.run_id, Message(role="assistant", content="printed"))
            return
        if way == "meddles":
            print("a part of a line", end="", flush=True)
            os.write(1, b"bytes")
            os.system("echo of a child")
            try:
                taken = input()
            except EOFError:
                taken = "nothing"
            yield RunnerResult.run_completed(ctx.run_id, Message(role="assistant", content=f"took {taken}"))
            return
        if way == "fills its threads":
            await asyncio.gather(*(asyncio.to_thread(wait_for_go) for _ in range(8)))
            yield RunnerResult.run_completed(ctx.run_id, Message(role="assistant", content="they are through"))
            return
        if way == "never waits":
            pathlib.Path("never-waits").touch()
            while not pathlib.Path("go").exists():
                yield RunnerResult.message_delta(ctx.run_id, MessageChunk(role="assistant", content="on and "))
            yield RunnerResult.run_completed(ctx.run_id)
            return
        if way == "says nothing":
            raise ValueError
        if way == "waits in vain":
            await asyncio.wait_for(asyncio.sleep(60), 0.01)
        yield RunnerResult.message_delta(ctx.run_id, MessageChunk(role="assistant", content="so far "))
        if way == "exits":
            os._exit(7)
        raise ValueError("broke in the middle")
