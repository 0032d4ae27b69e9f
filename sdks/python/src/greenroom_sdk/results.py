"""The results of a run: one function for each of the nine types, and for those that are only shown.

    yield delta("Hello, ")
    yield message("Hello, world")

Invariant: these functions build only results that the host accepts; run id and sequence are added when sending.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from greenroom_sdk import protocol

TERMINAL = frozenset({"run.completed", "run.failed"})


@dataclass(frozen=True)
class Result:
    """One item of a run's stream."""

    type: str
    data: Mapping[str, Any] = field(default_factory=dict)
    usage: Mapping[str, Any] | None = None

    @property
    def is_terminal(self) -> bool:
        return self.type in TERMINAL


def delta(text: str, *, message_id: str | None = None) -> Result:
    """`message.delta`: a piece of the answer."""
    if not isinstance(text, str):
        raise TypeError(f"a delta is text, not {type(text).__name__}")
    chunk = {"role": "assistant", "content": text}
    if message_id is not None:
        chunk["message_id"] = message_id
    return Result("message.delta", {"chunk": chunk})


def message(
    content: str | Sequence[protocol.ContentElement | Mapping[str, Any]],
    *,
    message_id: str | None = None,
    segments: Sequence[Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Result:
    """`message.completed`: the complete answer, with or without earlier deltas."""
    parts = content if isinstance(content, str) else list(content)
    data = {"content": parts, "message_id": message_id, "segments": segments, "metadata": metadata}
    return _checked("message.completed", {"message": data})


def tool_started(tool_call_id: str, tool_name: str, parameters: Any = None) -> Result:
    """`tool.call.started`."""
    data = {"tool_call_id": tool_call_id, "tool_name": tool_name, "parameters": parameters}
    return _checked("tool.call.started", data)


def tool_completed(tool_call_id: str, tool_name: str, result: Any = None, error: Any = None) -> Result:
    """`tool.call.completed`, with the result or the error of the tool."""
    data = {"tool_call_id": tool_call_id, "tool_name": tool_name, "result": result, "error": error}
    return _checked("tool.call.completed", data)


def artifact(
    content: bytes | None = None,
    *,
    artifact_id: str | None = None,
    name: str | None = None,
    mime_type: str | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Result:
    """`artifact.created`, with its content or with the id of an existing artifact."""
    data: dict[str, Any] = {"artifact_id": artifact_id, "name": name, "mime_type": mime_type, "metadata": metadata}
    if content is not None:
        data |= {"size_bytes": len(content), "content_base64": base64.b64encode(content).decode("ascii")}
    return _checked("artifact.created", data)


def state(scope: protocol.StateScope, key: str, value: Any) -> Result:
    """`state.updated`; `None` removes the key."""
    return _checked("state.updated", {"scope": scope, "key": key, "value": value})


def action(
    name: str, *, target: Mapping[str, Any] | None = None, payload: Mapping[str, Any] | None = None
) -> Result:
    """`action.requested`."""
    return _checked("action.requested", {"action": name, "target": target, "payload": payload})


def completed(finish_reason: str = "stop", *, usage: Mapping[str, Any] | None = None) -> Result:
    """`run.completed`; sent automatically when a run ends without it."""
    return Result("run.completed", {"finish_reason": finish_reason}, usage)


def failed(code: str, message: str, *, retryable: bool = False) -> Result:
    """`run.failed`; `raise RunFailure(code, message)` does the same."""
    return _checked("run.failed", {"code": code, "message": message, "retryable": retryable})


def reasoning(text: str) -> Result:
    """`reasoning.delta`: a piece of reasoning, before the text that it leads to."""
    return Result("reasoning.delta", {"text": text})


def tool_delta(tool_call_id: str, tool_name: str, args_text: str) -> Result:
    """`tool.call.delta`: a piece of a call's arguments; `tool_started` with the same id ends them."""
    return Result("tool.call.delta", {"tool_call_id": tool_call_id, "tool_name": tool_name, "args_text": args_text})


def step_started(name: str) -> Result:
    """`step.started`."""
    return Result("step.started", {"step_name": name})


def step_finished(name: str) -> Result:
    """`step.finished`."""
    return Result("step.finished", {"step_name": name})


def client_state(state: Any) -> Result:
    """`client.state.snapshot`: replaces the state of the client that sent the event."""
    return Result("client.state.snapshot", {"state": state})


def client_state_patch(operations: Sequence[Mapping[str, Any]]) -> Result:
    """`client.state.delta`: a JSON patch (RFC 6902) of that state."""
    return Result("client.state.delta", {"patch": [dict(operation) for operation in operations]})


def other(type: str, data: Mapping[str, Any]) -> Result:
    """A type that this SDK does not know; the host stores it without effect."""
    return Result(type, dict(data))


def _checked(type: str, data: Mapping[str, Any]) -> Result:
    """Raises where the result is built, instead of the host dropping it."""
    return Result(type, protocol.PAYLOADS[type].model_validate(data).wire())
