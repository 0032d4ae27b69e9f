"""Rests, so that many calls are open at the same time."""

import asyncio

from langbot_plugin.api.definition.components.tool.tool import Tool


class Nap(Tool):
    async def call(self, params, session, query_id):
        await asyncio.sleep(2)
        return "rested"
