"""Shows its settings, or what it reads about the parties of the event."""

import json

from langbot_plugin.api.definition.components.runner.runner import Runner
from langbot_plugin.api.entities.builtin.provider.message import Message
from langbot_plugin.api.entities.builtin.runner import RunnerContext, RunnerResult


async def read(ctx, tool):
    try:
        detail = await ctx.api.get_tool_detail(tool)
        return [detail["name"], await ctx.api.call_tool(tool, {})]
    except Exception as error:
        return [type(error).__name__]


class Show(Runner):
    async def run(self, ctx: RunnerContext):
        if ctx.input.to_text() == "settings":
            shown = {
                "plugin": self.plugin.get_config(),
                "at_start": self.plugin.at_start,
                "runner": ctx.config,
            }
        else:
            names = ["event_get_actor", "event_get_group", "event_get_group_member", "event_kick_member"]
            shown = {
                "listed": sorted(tool.tool_name for tool in ctx.resources.tools),
                "read": {name: await read(ctx, name) for name in names},
            }
        yield RunnerResult.run_completed(ctx.run_id, Message(role="assistant", content=json.dumps(shown)))
