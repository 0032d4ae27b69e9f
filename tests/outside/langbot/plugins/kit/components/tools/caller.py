"""Says who calls, as text."""

from langbot_plugin.api.definition.components.tool.tool import Tool


class Caller(Tool):
    async def call(self, params, session, query_id):
        return f"{session.launcher_type.value} {session.launcher_id} {session.sender_id}"
