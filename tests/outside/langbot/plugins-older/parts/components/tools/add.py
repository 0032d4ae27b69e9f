"""Adds two numbers."""

from langbot_plugin.api.definition.components.tool.tool import Tool


class Add(Tool):
    async def call(self, params, session, query_id):
        return {"sum": params["a"] + params["b"]}
