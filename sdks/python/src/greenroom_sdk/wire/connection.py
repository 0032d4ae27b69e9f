"""One connection to a host: handles the host's messages.

Invariant: every request that is not cancelled gets exactly one answer; nothing the host sends and nothing a run does
ends the process, except `shutdown` and the end of the connection.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from greenroom_sdk import protocol
from greenroom_sdk.api import HostCalls
from greenroom_sdk.context import RunCtx
from greenroom_sdk.errors import reasons
from greenroom_sdk.plugin import CheckedPlugin
from greenroom_sdk.wire import encoding
from greenroom_sdk.wire.calls import Calls
from greenroom_sdk.wire.deadline import Deadline
from greenroom_sdk.wire.outbox import Outbox
from greenroom_sdk.wire.runs import Run
from greenroom_sdk.wire.tool_calls import ToolCalls

DRAIN_S = 2.0
"""How long runs may take to end once the connection has ended."""

M = TypeVar("M", bound=protocol.Wire)


def sent(manifest: protocol.AgentRunnerManifest) -> dict[str, Any]:
    """A manifest without a default that says something if it is written: that tools are wanted by reference."""
    fields = manifest.wire()
    if "wants_static_context_refs" not in manifest.context.model_fields_set:
        fields["context"].pop("wants_static_context_refs", None)
    return fields


class Refused(Exception):
    """The request is answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class Connection:
    def __init__(self, plugin: CheckedPlugin, busy: Callable[[int], None] = lambda runs: None) -> None:
        self.outbox = Outbox()
        self.ended: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        """Set when the host requests shutdown; its result is the id of that request."""
        self.is_admitted, self.was_used = False, False
        """Whether the host accepted the plugin, and whether it ever started a run or called a tool."""
        self._plugin, self._busy = plugin, busy
        self._calls = Calls(self.outbox)
        self._tool_calls = ToolCalls(self._respond)
        self._runs: dict[str, Run] = {}
        self._requests: dict[str, Callable[[Any, Mapping[str, Any]], Any]] = {
            "initialize": self._initialize,
            "list_agent_runners": self._list_agent_runners,
            "list_tools": self._list_tools,
            "call_tool": self._call_tool,
            "run_agent": self._run_agent,
        }

    def receive(self, line: bytes | bytearray | str) -> None:
        """Handles one message of the host."""
        try:
            message = encoding.decode(line)
        except ValueError as error:
            return self._refuse(None, encoding.PARSE_ERROR, str(error))
        if not isinstance(message, Mapping):
            return self._refuse(None, encoding.INVALID_REQUEST, "a message is an object")
        method, request_id = message.get("method"), message.get("id")
        params = message.get("params")
        params = params if isinstance(params, Mapping) else {}
        if not isinstance(method, str):
            self._handle_answer(message)
        elif method == "shutdown":
            if not self.ended.done():
                self.ended.set_result(request_id)
        elif request_id is None:
            self._handle_notification(method, params, len(line))
        elif isinstance(request_id, (int, str)):
            self._handle_request(request_id, method, params)
        else:
            self._refuse(None, encoding.INVALID_REQUEST, "an id is a number or a text")

    async def drain(self, shutdown_id: Any = None) -> None:
        """Cancels all runs, answers `shutdown` if that was the reason, and lets the writer finish."""
        runs = list(self._runs.values())
        for run in runs:
            run.cancel()
        waits = [asyncio.ensure_future(run.wait()) for run in runs]
        if waits := [*waits, *self._tool_calls.cancel_all()]:
            await asyncio.wait(waits, timeout=DRAIN_S)
        self._calls.close()
        if shutdown_id is not None:
            self._respond(shutdown_id, {})
        self.outbox.close()

    def abandon(self) -> None:
        """Drops everything: the connection broke."""
        self.outbox.close()
        self._calls.close()
        self._tool_calls.cancel_all()
        for run in list(self._runs.values()):
            run.cancel()
        if not self.ended.done():
            self.ended.set_result(None)

    def _handle_request(self, request_id: Any, method: str, params: Mapping[str, Any]) -> None:
        handle = self._requests.get(method)
        self.is_admitted |= method != "initialize"
        if handle is None:
            return self._refuse(request_id, encoding.METHOD_NOT_FOUND, f"unknown method `{method}`")
        try:
            answer = handle(request_id, params)
        except Refused as refused:
            return self._refuse(request_id, refused.code, refused.message)
        if answer is not None:
            self._respond(request_id, answer)

    def _handle_notification(self, method: str, params: Mapping[str, Any], size: int) -> None:
        """Notifications have no answer; unknown ones are ignored, as JSON-RPC requires."""
        if method == "stream.item":
            self._calls.item(params, size)
        elif method == "run.cancel":
            run = self._runs.get(str(params.get("run_id")))
            if run is not None:
                run.cancel()
        elif method == "request.cancel":
            self._tool_calls.cancel(params.get("request_id"))

    def _handle_answer(self, message: Mapping[str, Any]) -> None:
        """An answer to one of our calls, or an invalid message."""
        request_id = message.get("id")
        if self._calls.answered(request_id, message) or (request_id is None and "error" in message):
            return
        is_id = isinstance(request_id, (int, str))
        self._refuse(request_id if is_id else None, encoding.INVALID_REQUEST, "`method` is missing")

    def _initialize(self, request_id: Any, params: Mapping[str, Any]) -> Any:
        request = _read(protocol.InitializeParams, params)
        if request.protocol_version.split(".")[0] != protocol.PROTOCOL_VERSION:
            text = f"protocol version `{request.protocol_version}` is not supported, `1` is"
            raise Refused(encoding.INVALID_PARAMS, text)
        return {"protocol_version": protocol.PROTOCOL_VERSION, "plugin": self._plugin.identity}

    def _list_agent_runners(self, request_id: Any, params: Mapping[str, Any]) -> Any:
        return {"runners": [sent(manifest) for manifest, _ in self._plugin.runners.values()]}

    def _list_tools(self, request_id: Any, params: Mapping[str, Any]) -> Any:
        return {"tools": [tool.described.wire() for tool in self._plugin.tools.values()]}

    def _call_tool(self, request_id: Any, params: Mapping[str, Any]) -> None:
        request = _read(protocol.CallToolParams, params)
        tool = self._plugin.tools.get(request.tool_name)
        if tool is None:
            raise Refused(encoding.INVALID_PARAMS, f"unknown tool `{request.tool_name}`")
        if self._tool_calls.is_open(request_id):
            raise Refused(encoding.INVALID_REQUEST, "a call with this id is already open")
        self.was_used = True
        self._tool_calls.start(request_id, tool, request)

    def _run_agent(self, request_id: Any, params: Mapping[str, Any]) -> None:
        request = _read(protocol.AgentRunRequest, params)
        _, start = self._plugin.runners.get(request.runner_id, (None, None))
        if start is None:
            raise Refused(encoding.INVALID_PARAMS, f"unknown runner `{request.runner_id}`")
        run_id = request.context.run_id
        if run_id in self._runs:
            raise Refused(encoding.INVALID_PARAMS, f"run `{run_id}` is already running")
        host = HostCalls(request.context, self._calls, Deadline(_remaining_ms(request.context)))
        ctx = RunCtx(request.context, host, self.outbox)

        def ended(run: Run) -> None:
            self._runs.pop(run_id, None)
            self._calls.end_run(run_id)
            self._busy(len(self._runs))
            self._respond(request_id, {})

        self.was_used = True
        self._runs[run_id] = Run(ctx, start, self._plugin.cancel_grace_s, ended)
        self._busy(len(self._runs))

    def _respond(self, request_id: Any, result: Any) -> None:
        self.outbox.push(encoding.encode({"jsonrpc": "2.0", "id": request_id, "result": result}))

    def _refuse(self, request_id: Any, code: int, message: str) -> None:
        error = {"code": code, "message": message}
        self.outbox.push(encoding.encode({"jsonrpc": "2.0", "id": request_id, "error": error}))


def _read(kind: type[M], params: Mapping[str, Any]) -> M:
    try:
        return kind.model_validate(params)
    except ValidationError as error:
        raise Refused(encoding.INVALID_PARAMS, reasons(error)) from None


def _remaining_ms(context: protocol.AgentRunContext) -> float | None:
    """The time left: as told, else until the deadline by this machine's clock."""
    left = context.runtime.metadata.get("remaining_ms")
    if isinstance(left, (int, float)) and not isinstance(left, bool):
        return left
    deadline = context.runtime.deadline_at
    return None if deadline is None else (deadline - time.time()) * 1000
