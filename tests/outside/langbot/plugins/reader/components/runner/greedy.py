"""Bypasses the checks of the SDK: sends the actions in the input unchanged."""

import json

from langbot_plugin.api.definition.components.runner.runner import Runner
from langbot_plugin.api.entities.builtin.provider.message import Message
from langbot_plugin.api.entities.builtin.runner import RunnerContext, RunnerResult
from langbot_plugin.api.entities.builtin.runner.errors import AgentAPIException
from langbot_plugin.entities.io.actions.enums import CommonAction, PluginToRuntimeAction


class Greedy(Runner):
    async def run(self, ctx: RunnerContext):
        outcomes = []
        for action, data in json.loads(ctx.input.to_text()):
            data = json.loads(json.dumps(data).replace("$RUN", ctx.run_id))
            kind = CommonAction if action.startswith("__") else PluginToRuntimeAction
            handler = ctx.api._api._api.plugin_runtime_handler
            try:
                outcomes.append({"ok": await handler.call_action(kind(action), data)})
            except AgentAPIException as error:
                outcomes.append({"code": error.error.code, "details": error.error.details})
        yield RunnerResult.run_completed(ctx.run_id, Message(role="assistant", content=json.dumps(outcomes)))
