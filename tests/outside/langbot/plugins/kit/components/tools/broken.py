"""Fails."""

from langbot_plugin.api.definition.components.tool.tool import Tool


class Broken(Tool):
    async def call(self, params, session, query_id):
        raise ValueError("out of order")
