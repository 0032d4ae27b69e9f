"""The record of a test run, and answers to its calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from greenroom_sdk.protocol import AgentRunResult, RunFailed


@dataclass(frozen=True)
class Request:
    """A call of the run."""

    method: str
    params: Mapping[str, Any]


@dataclass(frozen=True)
class Reply:
    """An answer after these items of a stream; `never` leaves the call open."""

    result: Any = None
    items: Sequence[Any] = ()
    never: bool = False


@dataclass(frozen=True)
class Refuse:
    """A refusal with a code of the host: `unauthorized`, `not_found`, `rate_limited`, …"""

    code: str
    message: str = "refused by the test"
    retryable: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Ran:
    """The record of a run."""

    results: list[AgentRunResult] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    """The calls, in order."""
    given_up: list[Request] = field(default_factory=list)
    """The calls that the run cancelled."""

    @property
    def types(self) -> list[str]:
        return [result.type for result in self.results]

    @property
    def text(self) -> str:
        """The last complete message; without one, all deltas."""
        whole = [result.data["message"]["content"] for result in self.results if result.type == "message.completed"]
        return str(whole[-1]) if whole else self.streamed

    @property
    def streamed(self) -> str:
        """All deltas; one with `replace` takes the place of those before it."""
        text = ""
        for one in self.results:
            if one.type == "message.delta":
                chunk = one.data["chunk"]
                text = chunk["content"] if chunk.get("replace") else text + chunk["content"]
        return text

    @property
    def is_completed(self) -> bool:
        return bool(self.results) and self.results[-1].type == "run.completed"

    @property
    def error(self) -> RunFailed | None:
        """How the run failed, if it did."""
        last = self.results[-1] if self.results else None
        return RunFailed.model_validate(last.data) if last is not None and last.type == "run.failed" else None

    @property
    def usage(self) -> dict[str, Any] | None:
        return self.results[-1].usage if self.results else None

    def calls(self, method: str) -> list[Mapping[str, Any]]:
        """The parameters of the calls of one method."""
        return [request.params for request in self.requests if request.method == method]
