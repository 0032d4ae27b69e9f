"""Does what the input names, on the SDK of the older dialect."""

import asyncio
import json
import sys

from langbot_plugin.api.definition.components.agent_runner.runner import AgentRunner
from langbot_plugin.api.entities.builtin.agent_runner.result import AgentRunResult
from langbot_plugin.api.entities.builtin.provider.message import Message


class Default(AgentRunner):
    async def run(self, ctx):
        text = ctx.input.to_text()
        if text == "exit":
            sys.exit(3)
        if text == "stray":
            raise asyncio.CancelledError()
        if text == "print":
            print("no newline", end="", flush=True)
        if text == "input":
            text = json.dumps(ctx.input.model_dump(mode="json", exclude_none=True))
        if text == "state":
            api = self.get_run_api(ctx)
            before = await api.state_get("conversation", "count")
            count = ((before or {}).get("value") or 0) + 1
            await api.state_set("conversation", "count", count)
            text = str(count)
        yield AgentRunResult.message_completed(ctx.run_id, Message(role="assistant", content=text))
        yield AgentRunResult.run_completed(ctx.run_id)
