"""Asks with a form that the text chooses; shows the answer that comes back."""

import json
import time

from langbot_plugin.api.definition.components.runner.runner import Runner
from langbot_plugin.api.entities.builtin.provider.message import Message, MessageChunk
from langbot_plugin.api.entities.builtin.runner import (
    INTERACTION_SUBMITTED_EVENT,
    InteractionRequest,
    RunnerContext,
    RunnerResult,
)

ORDER = {
    "interaction_id": "order-1",
    "title": "What may it be?",
    "description": "One cup each",
    "fields": [
        {"id": "drink", "label": "Drink", "type": "select", "required": True,
         "options": [{"value": "tea", "label": "Tea"}, {"value": "coffee", "label": "Coffee"}]},
        {"id": "cups", "label": "Cups", "type": "number", "default": 1},
        {"id": "extras", "label": "Extras", "type": "multiselect",
         "options": [{"value": "milk", "label": "Milk"}, {"value": "sugar", "label": "Sugar"}]},
    ],
    "actions": [{"id": "order", "label": "Order", "style": "primary"},
                {"id": "cancel", "label": "Cancel", "style": "danger"}],
    "fallback_text": "Reply with tea or coffee.",
}
REPORT = {
    "interaction_id": "report-1",
    "title": "Which report?",
    "fields": [{"id": "report", "label": "Report", "type": "file", "required": True}],
    "fallback_text": "Send the report.",
}


class Asks(Runner):
    async def run(self, ctx: RunnerContext):
        if ctx.event.event_type == INTERACTION_SUBMITTED_EVENT:
            answer = ctx.input.interaction
            shown = {"id": answer.interaction_id, "action": answer.action_id, "values": answer.values,
                     "recent": abs(time.time() - answer.submitted_at) < 60, "text": ctx.input.to_text(),
                     "subject": [ctx.subject.subject_type, ctx.subject.subject_id], "actor": ctx.actor.actor_id}
            if ctx.conversation.launcher_type == "group":
                shown["group"] = ctx.conversation.launcher_id
            if ctx.input.attachments:
                shown["files"] = [[file.name, file.content] for file in ctx.input.attachments]
            yield RunnerResult.run_completed(ctx.run_id, Message(role="assistant", content=json.dumps(shown)))
            return
        forms = ctx.delivery.interactions
        shown = sorted(forms.field_types) if forms else None
        chunk = MessageChunk(role="assistant", content=f"I can show {json.dumps(shown)}.")
        yield RunnerResult.message_delta(ctx.run_id, chunk)
        order = dict(REPORT if ctx.input.to_text() == "report" else ORDER)
        if ctx.input.to_text() == "soon over":
            order["expires_at"] = int(time.time())
        yield RunnerResult.interaction_requested(ctx.run_id, InteractionRequest.model_validate(order))
        yield RunnerResult.run_completed(ctx.run_id)
