"""Calls of the host to a plugin's tools.

Invariant: a call is answered once, or cancelled by the host and not answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from greenroom_sdk import protocol
from greenroom_sdk.errors import GreenroomError
from greenroom_sdk.tool import Tool, ToolOutput
from greenroom_sdk.wire.encoding import LINE_BYTES_MAX, NotJson, TooLarge, encode
from greenroom_sdk.wire.log import describe, say_exception

RequestId = Any
FRAME_BYTES = 1024
"""Size of an answer around its result."""


class ToolCalls:
    """All calls of a connection."""

    def __init__(self, respond: Callable[[RequestId, Any], None]) -> None:
        self._respond = respond
        self._open: dict[RequestId, asyncio.Task[None]] = {}

    def is_open(self, request_id: RequestId) -> bool:
        return request_id in self._open

    def start(self, request_id: RequestId, tool: Tool, params: protocol.CallToolParams) -> None:
        work = self._work(request_id, tool, params)
        task = asyncio.get_running_loop().create_task(work, name=f"tool {tool.name} {params.tool_call_id}")
        self._open[request_id] = task
        task.add_done_callback(lambda _: self._open.pop(request_id, None))

    def cancel(self, request_id: RequestId) -> None:
        if isinstance(request_id, (int, str)) and request_id in self._open:
            self._open[request_id].cancel()

    def cancel_all(self) -> list[asyncio.Task[None]]:
        for task in self._open.values():
            task.cancel()
        return list(self._open.values())

    async def _work(self, request_id: RequestId, tool: Tool, params: protocol.CallToolParams) -> None:
        self._respond(request_id, await _answer(tool, params))


async def _answer(tool: Tool, params: protocol.CallToolParams) -> dict[str, Any]:
    try:
        result = await tool.call(params)
    except GreenroomError as error:
        return _error(error.code, error.message, error.retryable)
    except (Exception, SystemExit) as error:
        say_exception(f"the tool `{tool.name}` failed", error)
        return _error("tool.error", describe(error), False)
    answer = {"result": result}
    if isinstance(result, ToolOutput):
        answer = {"result": result.result, "content": result.content}
    try:
        size = len(encode(answer))
    except NotJson as error:
        return _error("tool.error", f"the result is not JSON: {error}", False)
    except TooLarge as error:
        return _error("payload_too_large", str(error), False)
    if size > LINE_BYTES_MAX - FRAME_BYTES:
        return _error("payload_too_large", f"{size} bytes exceed the host's limit", False)
    return answer


def _error(code: str, message: str, retryable: bool) -> dict[str, Any]:
    return {"result": None, "error": {"code": code, "message": message, "retryable": retryable}}
