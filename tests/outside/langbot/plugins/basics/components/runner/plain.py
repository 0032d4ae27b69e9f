"""Answers with its context."""

import json

from langbot_plugin.api.definition.components.runner.runner import Runner
from langbot_plugin.api.entities.builtin.provider.message import Message
from langbot_plugin.api.entities.builtin.runner import RunnerContext, RunnerResult


class Plain(Runner):
    async def run(self, ctx: RunnerContext):
        text = ctx.input.to_text()
        if text == "who":
            event = ctx.platform_event
            text = json.dumps({
                "launcher": [ctx.conversation.launcher_type, ctx.conversation.launcher_id],
                "sender": ctx.conversation.sender_id,
                "session": ctx.conversation.session_id,
                "bot": await ctx.get_bot_uuid(),
                "event": [type(event).__name__, str(event.message_chain), event.sender.id],
                "config": ctx.config,
                "attachments": [item.model_dump(exclude_none=True) for item in ctx.input.attachments],
                "contents": [item.model_dump(exclude_none=True) for item in ctx.input.contents],
                "reply": ctx.delivery.automatic_reply,
            })
        message = Message(role="assistant", content=f"Received: {text}")
        usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
        yield RunnerResult.run_completed(ctx.run_id, message, usage=usage)
