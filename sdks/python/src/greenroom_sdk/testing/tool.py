"""One call of a plugin's tool over the real wire, in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from greenroom_sdk.plugin import Plugin
from greenroom_sdk.protocol import CallToolResult
from greenroom_sdk.testing.frames import FrameChecks, need
from greenroom_sdk.wire.connection import Connection
from greenroom_sdk.wire.encoding import encode


def call_tool(plugin: Plugin, tool_name: str, parameters: Mapping[str, Any] | None = None) -> CallToolResult:
    """Calls a tool of a plugin once. A tool that fails answers with `error`; an unknown tool is refused."""
    return asyncio.run(call_tool_async(plugin, tool_name, parameters))


async def call_tool_async(
    plugin: Plugin, tool_name: str, parameters: Mapping[str, Any] | None = None, timeout_s: float = 30
) -> CallToolResult:
    connection = Connection(plugin.checked())
    params = {"tool_name": tool_name, "parameters": dict(parameters or {}), "tool_call_id": "call-1"}
    connection.receive(encode({"jsonrpc": "2.0", "id": 1, "method": "call_tool", "params": params}))

    async def answer() -> CallToolResult:
        async for batch in connection.outbox.batches():
            message = FrameChecks("").parse(batch[0])
            need("error" not in message, f"the call was refused: {message.get('error', {}).get('message')}")
            return CallToolResult.model_validate(message["result"])
        raise LookupError("the plugin did not answer")

    try:
        return await asyncio.wait_for(answer(), timeout_s)
    finally:
        connection.abandon()
