"""Calls of one run to its host: checked here, sent, awaited until the run's deadline.

Invariant: these checks use only the run's context; they never replace the host's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from greenroom_sdk import protocol
from greenroom_sdk.errors import DeadlineExceeded, HostError, InvalidArgument, NotFound, Unauthorized, reasons
from greenroom_sdk.wire.calls import Call, Calls
from greenroom_sdk.wire.deadline import Deadline, Watch

M = TypeVar("M", bound=BaseModel)
P = TypeVar("P", bound=protocol.Wire)

FLAGS = {
    "history.page": "history_page",
    "history.search": "history_search",
    "events.get": "event_get",
    "events.page": "event_page",
    "artifacts.metadata": "artifact_metadata",
    "artifacts.read_range": "artifact_read",
    "artifacts.open_stream": "artifact_read",
    "artifacts.create": "artifact_create",
    "artifacts.begin": "artifact_create",
    "artifacts.append": "artifact_create",
    "artifacts.commit": "artifact_create",
    "state.get": "state",
    "state.set": "state",
    "state.delete": "state",
    "state.list": "state",
    "storage.get": "storage",
    "storage.set": "storage",
    "storage.delete": "storage",
    "storage.list": "storage",
    "steering.pull": "steering_pull",
}
"""The flag of `ctx.context.available_apis` that enables a method; methods without one depend on `ctx.resources`."""


class HostCalls:
    """The calls of one run."""

    def __init__(self, context: protocol.AgentRunContext, calls: Calls, deadline: Deadline) -> None:
        self.context, self._calls, self.deadline = context, calls, deadline
        self.is_over = self.is_cancelled = False

    async def request(self, method: str, params: type[P], answer: type[M], **fields: Any) -> M:
        """Calls a method with typed parameters and parses its answer."""
        self.check_available(method)
        return read(method, answer, await self.call(method, build(params, fields).wire()))

    async def request_with_pause(self, method: str, params: type[P], answer: type[M], **fields: Any) -> M:
        """The same for a call that may wait for a person: the deadline is paused meanwhile."""
        with self.deadline.paused():
            return await self.request(method, params, answer, **fields)

    async def call(self, method: str, params: Mapping[str, Any]) -> Any:
        """Calls any method by name; cancelling the wait cancels the call."""
        call, watch = await self.open(method, params)
        try:
            return await call.answer
        finally:
            watch.cancel()
            call.give_up()

    async def open(self, method: str, params: Mapping[str, Any]) -> tuple[Call, Watch]:
        """Sends a call; the caller cancels its watch and the call."""
        if self.is_cancelled:
            raise asyncio.CancelledError("the run was cancelled")
        if self.is_over:
            raise Unauthorized(f"the run has ended and cannot call `{method}`")
        call = await self._calls.open(self.context.run_id, method, params)
        late = DeadlineExceeded(f"the run's deadline passed while waiting for `{method}`")
        return call, self.deadline.watch(lambda: call.fail(late))

    def check_available(self, method: str) -> None:
        flag = FLAGS.get(method)
        if flag is not None and not getattr(self.context.context.available_apis, flag):
            raise Unauthorized(f"this run may not use `{method}`: `available_apis.{flag}` is off")

    def check_model(self, model_id: str, operation: str) -> None:
        operations = (one.operations for one in self.context.resources.models if one.model_id == model_id)
        _granted("model", model_id, operation, next(operations, None))

    def check_tool(self, tool_name: str, operation: str) -> None:
        operations = (one.operations for one in self.context.resources.tools if one.tool_name == tool_name)
        _granted("tool", tool_name, operation, next(operations, None))

    def check_tool_call(self, tool_name: str) -> None:
        """Unknown tools are left to the host, which reports a missing grant to the operator."""
        if any(one.tool_name == tool_name for one in self.context.resources.tools):
            self.check_tool(tool_name, "call")

    def check_knowledge(self, kb_id: str, operation: str) -> None:
        operations = (one.operations for one in self.context.resources.knowledge_bases if one.kb_id == kb_id)
        _granted("knowledge base", kb_id, operation, next(operations, None))

    def check_area(self, area: str) -> None:
        if not getattr(self.context.resources.storage, area, True):
            raise Unauthorized(f"the storage area `{area}` is not granted to this run")


def _granted(what: str, name: str, operation: str, operations: list[Any] | None) -> None:
    """A resource without operations allows all of them."""
    if operations is None:
        raise NotFound(f"{what} `{name}` is not in `ctx.resources`")
    if operations and operation not in operations:
        raise Unauthorized(f"the {what} `{name}` is not granted for `{operation}`")


def build(kind: type[P], fields: Mapping[str, Any]) -> P:
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        raise InvalidArgument(reasons(error)) from None


def read(method: str, kind: type[M], value: Any) -> M:
    """Parses an answer of the host."""
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise HostError(f"the answer to `{method}` is not as expected: {reasons(error)}") from None


def read_as(method: str, adapter: TypeAdapter[Any], value: Any) -> Any:
    """The same for union types."""
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        raise HostError(f"an item of `{method}` is not as expected: {reasons(error)}") from None
