"""Waits until it is cancelled, and leaves marks."""

import asyncio
import pathlib

from langbot_plugin.api.definition.components.tool.tool import Tool


class Slow(Tool):
    async def call(self, params, session, query_id):
        pathlib.Path("slow.started").touch()
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            pathlib.Path("slow.cancelled").touch()
            raise
