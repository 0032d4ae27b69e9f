"""Answers with a long text."""

from langbot_plugin.api.definition.components.tool.tool import Tool


class Big(Tool):
    async def call(self, params, session, query_id):
        return "x" * (params["mib"] << 20)
