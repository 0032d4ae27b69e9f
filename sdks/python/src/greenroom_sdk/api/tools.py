"""Tools: `api.tools`, by their names in `ctx.resources.tools`; credentials stay with the host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from greenroom_sdk import protocol
from greenroom_sdk.api.host_calls import HostCalls


class ToolsApi:
    def __init__(self, host: HostCalls) -> None:
        self._host = host

    async def get_detail(self, tool_name: str) -> protocol.ToolResource:
        """A tool with the schema of its parameters."""
        self._host.check_tool(tool_name, "detail")
        params, answer = protocol.ToolDetailParams, protocol.ToolResource
        return await self._host.request("tools.get_detail", params, answer, tool_name=tool_name)

    async def search(self, query: str, top_k: int = 5) -> list[protocol.ToolResource]:
        """The best matching tools."""
        params, answer = protocol.ToolSearchParams, protocol.ToolSearchResult
        return (await self._host.request("tools.search", params, answer, query=query, top_k=top_k)).items

    async def call(
        self,
        tool_name: str,
        parameters: Mapping[str, Any] | None = None,
        tool_call_id: str | None = None,
        authority: protocol.ToolAuthority | None = None,
    ) -> protocol.ToolCallResult:
        """Calls a tool; an error of the tool is in `.error`, and `.text` is for a model.

        The call may wait for a person; the deadline is paused meanwhile.
        """
        self._host.check_tool_call(tool_name)
        return await self._host.request_with_pause(
            "tools.call",
            protocol.ToolCallParams,
            protocol.ToolCallResult,
            tool_name=tool_name,
            parameters=dict(parameters or {}),
            tool_call_id=tool_call_id,
            authority=authority,
        )
