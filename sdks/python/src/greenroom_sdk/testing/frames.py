"""Checks every frame of a runner as strictly as a host.

Invariant: what passes here is taken by a host; the first frame that does not is an error that says why.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

from pydantic import ValidationError

from greenroom_sdk import protocol
from greenroom_sdk.errors import reasons
from greenroom_sdk.wire.encoding import LINE_BYTES_MAX

M = TypeVar("M", bound=protocol.Wire)
ANSWER_KEYS = ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"})


class WireViolation(AssertionError):
    """A frame that a host would reject."""


class FrameChecks:
    """Follows the frames of one run."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._last_sequence = 0
        self._terminal: str | None = None
        self._is_answered = False
        self._call_ids: set[int | str] = set()

    def parse(self, line: bytes) -> dict[str, Any]:
        """One message, with its frame checked."""
        need(len(line) <= LINE_BYTES_MAX, f"a frame has {len(line)} bytes, a host takes {LINE_BYTES_MAX}")
        need(b"\n" not in line, "a frame has a line end inside")
        try:
            message = json.loads(line.decode("utf-8"), parse_constant=_no_constant)
        except ValueError as error:
            raise WireViolation(f"a frame is not JSON: {error}: {line[:80]!r}") from None
        need(isinstance(message, dict), "a frame is not an object")
        need(message.get("jsonrpc") == "2.0", "a frame has no `jsonrpc` 2.0")
        checked: dict[str, Any] = message
        if "method" in checked:
            need(set(checked) <= {"jsonrpc", "id", "method", "params"}, f"a request has odd fields: {sorted(checked)}")
        else:
            need(set(checked) in ANSWER_KEYS, f"an answer has odd fields: {sorted(checked)}")
        return checked

    def result(self, message: dict[str, Any]) -> protocol.AgentRunResult:
        """One `run.result`."""
        need("id" not in message, "`run.result` is a notification, it has no id")
        result = _read(protocol.AgentRunResult, message.get("params"), "run.result")
        need(result.run_id == self._run_id, f"a result names the run `{result.run_id}`")
        need(self._terminal is None, f"`{result.type}` came after `{self._terminal}`")
        need(not self._is_answered, f"`{result.type}` came after the answer to `run_agent`")
        sequence = result.sequence or 0
        need(sequence > self._last_sequence, f"`sequence` does not increase at {sequence}")
        self._last_sequence = sequence
        payload = protocol.PAYLOADS.get(result.type)
        if payload is not None:
            _read(payload, result.data, result.type)
        if result.type in ("run.completed", "run.failed"):
            self._terminal = result.type
        return result

    def call(self, message: dict[str, Any]) -> None:
        """One call of the run."""
        method, params, call_id = message["method"], message.get("params"), message.get("id")
        need(method in protocol.PARAMS, f"unknown method `{method}`")
        need(isinstance(call_id, (int, str)) and call_id not in self._call_ids, f"`{method}` has the id {call_id!r}")
        self._call_ids.add(str(call_id) if not isinstance(call_id, (int, str)) else call_id)
        need(isinstance(params, dict) and params.get("run_id") == self._run_id, f"`{method}` names no run of ours")
        need(not self._is_answered, f"`{method}` was called after the end of the run")
        _read(protocol.PARAMS[method], params, method)

    def answer(self, message: dict[str, Any]) -> None:
        """The answer to `run_agent`."""
        need("error" not in message, f"`run_agent` was answered with the error {message.get('error')}")
        need(self._terminal is not None, "`run_agent` was answered without a terminal result")
        need(not self._is_answered, "`run_agent` was answered twice")
        self._is_answered = True


def need(condition: bool, sentence: str) -> None:
    if not condition:
        raise WireViolation(sentence)


def _read(kind: type[M], value: Any, what: str) -> M:
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise WireViolation(f"`{what}` does not match the protocol: {reasons(error)}") from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"`{name}` is not JSON")
