"""Streams the words of the input, then the complete message."""

from langbot_plugin.api.definition.components.runner.runner import Runner
from langbot_plugin.api.entities.builtin.provider.message import Message, MessageChunk
from langbot_plugin.api.entities.builtin.runner import RunnerContext, RunnerResult


class Streaming(Runner):
    async def run(self, ctx: RunnerContext):
        words = ctx.input.to_text().split()
        await ctx.log(f"{len(words)} words", level="debug")
        shown = ""
        for word in words:
            # Each chunk has everything so far.
            shown = f"{shown} {word}".strip()
            yield RunnerResult.message_delta(ctx.run_id, MessageChunk(role="assistant", content=shown))
        yield RunnerResult.message_delta(ctx.run_id, MessageChunk(role="assistant", content=None, is_final=True))
        yield RunnerResult.message_completed(ctx.run_id, Message(role="assistant", content=" ".join(words)))
        yield RunnerResult.run_completed(ctx.run_id)
