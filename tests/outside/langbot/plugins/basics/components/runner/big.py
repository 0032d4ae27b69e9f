"""Answers with two megabytes, at once or in chunks, or with the size of its input."""

from langbot_plugin.api.definition.components.runner.runner import Runner
from langbot_plugin.api.entities.builtin.provider.message import Message, MessageChunk
from langbot_plugin.api.entities.builtin.runner import RunnerContext, RunnerResult

SIZE = 2 * 1024 * 1024


class Big(Runner):
    async def run(self, ctx: RunnerContext):
        text = ctx.input.to_text()
        if text == "whole":
            yield RunnerResult.message_completed(ctx.run_id, Message(role="assistant", content="é" * (SIZE // 2)))
        elif text == "ending":
            yield RunnerResult.run_completed(ctx.run_id, Message(role="assistant", content="é" * (SIZE // 2)))
            return
        elif text == "streamed":
            for size in range(SIZE // 8, SIZE + 1, SIZE // 8):
                yield RunnerResult.message_delta(ctx.run_id, MessageChunk(role="assistant", content="x" * size))
        else:
            yield RunnerResult.message_completed(ctx.run_id, Message(role="assistant", content=str(len(text))))
        yield RunnerResult.run_completed(ctx.run_id)
