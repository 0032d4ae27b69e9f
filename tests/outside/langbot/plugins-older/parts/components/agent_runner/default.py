"""Shows its settings, asks with a form, or calls the tool of its own plugin."""

import json

from langbot_plugin.api.definition.components.agent_runner.runner import AgentRunner
from langbot_plugin.api.entities.builtin.agent_runner import (
    INTERACTION_SUBMITTED_EVENT,
    AgentRunResult,
    InteractionRequest,
)
from langbot_plugin.api.entities.builtin.provider.message import Message

ORDER = {
    "interaction_id": "order-1",
    "title": "What may it be?",
    "fields": [{"id": "drink", "label": "Drink", "type": "text", "required": True}],
    "actions": [{"id": "order", "label": "Order", "style": "primary"}],
    "fallback_text": "Reply with a drink.",
}


class Default(AgentRunner):
    async def run(self, ctx):
        text = ctx.input.to_text()
        if ctx.event.event_type == INTERACTION_SUBMITTED_EVENT:
            text = json.dumps([ctx.input.interaction.action_id, ctx.input.interaction.values])
        elif text == "ask":
            yield AgentRunResult.interaction_requested(ctx.run_id, InteractionRequest.model_validate(ORDER))
            yield AgentRunResult.run_completed(ctx.run_id)
            return
        elif text == "settings":
            text = json.dumps([self.get_plugin_config(), ctx.config])
        elif text == "add":
            text = json.dumps(await self.get_run_api(ctx).call_tool("parts.add", {"a": 2, "b": 3}))
        yield AgentRunResult.message_completed(ctx.run_id, Message(role="assistant", content=text))
        yield AgentRunResult.run_completed(ctx.run_id)
