"""Sends the results in the input, a JSON list of [kind, chunk or message], then the end of the run."""

import json

from langbot_plugin.api.definition.components.runner.runner import Runner
from langbot_plugin.api.entities.builtin.provider.message import Message, MessageChunk
from langbot_plugin.api.entities.builtin.runner import RunnerContext, RunnerResult


class Replay(Runner):
    async def run(self, ctx: RunnerContext):
        for kind, given in json.loads(ctx.input.to_text()):
            if kind == "delta":
                yield RunnerResult.message_delta(ctx.run_id, MessageChunk(role="assistant", **given))
            elif kind == "completed":
                yield RunnerResult.message_completed(ctx.run_id, Message(role="assistant", **given))
            elif kind == "input":
                given = ctx.input.model_dump(mode="json", exclude_none=True)
                yield RunnerResult.message_completed(ctx.run_id, Message(role="assistant", content=json.dumps(given)))
        yield RunnerResult.run_completed(ctx.run_id)
