"""Says what it was told, on the wire of LangBot."""

from langbot_plugin.api.definition.components.runner.runner import Runner
from langbot_plugin.api.entities.builtin.provider.message import Message, MessageChunk
from langbot_plugin.api.entities.builtin.runner import RunnerResult


class Echo(Runner):
    async def run(self, ctx):
        text = ctx.input.to_text()
        yield RunnerResult.message_delta(ctx.run_id, MessageChunk(role="assistant", content=text))
        yield RunnerResult.message_completed(ctx.run_id, Message(role="assistant", content=text))
        yield RunnerResult.run_completed(ctx.run_id)
