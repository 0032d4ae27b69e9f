"""One run as its runner sees it: its context, its results, its calls to the host.

Invariant: results carry the run's id and a sequence number, in the order they were sent; nothing is sent after a
terminal result or a cancellation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from greenroom_sdk import protocol, results
from greenroom_sdk.api import Api, HostCalls
from greenroom_sdk.errors import RunFailure
from greenroom_sdk.gateway import Gateway, gateway_of
from greenroom_sdk.results import Result
from greenroom_sdk.wire.encoding import NotJson, TooLarge, encode
from greenroom_sdk.wire.outbox import Outbox

TURN = 32
"""Yields to the event loop after this many results."""


class RunCtx:
    """The context of a run; reads as the protocol's `AgentRunContext`."""

    def __init__(self, context: protocol.AgentRunContext, host: HostCalls, outbox: Outbox) -> None:
        self.raw = context
        """The whole context, including fields that this SDK does not know."""
        self.run_id = context.run_id
        self.trigger = context.trigger
        self.event = context.event
        self.conversation = context.conversation
        self.actor = context.actor
        self.subject = context.subject
        self.input = context.input
        self.delivery = context.delivery
        self.resources = context.resources
        self.context = context.context
        self.state = context.state
        self.runtime = context.runtime
        self.config = context.config
        self.metadata = context.metadata
        self.api = Api(host)
        self._host, self._outbox = host, outbox
        self._sequence = 0
        self._usage: Mapping[str, Any] | None = None
        self._is_ended = self._is_cancelled = False

    @property
    def text(self) -> str:
        """The text of the event, empty when it has none."""
        return self.input.text or ""

    @property
    def gateway(self) -> Gateway | None:
        """Where programs that this runner starts reach tools and models of the run, and their token."""
        return gateway_of(self.raw)

    @property
    def attempt(self) -> int:
        return int(self.metadata.get("attempt") or 1)

    @property
    def remaining(self) -> float | None:
        """Seconds until the deadline; `None` without one. Paused while a call waits for a person."""
        return self._host.deadline.remaining()

    @property
    def is_cancelled(self) -> bool:
        """Whether the host cancelled the run, for code in threads, which gets no `CancelledError`."""
        return self._is_cancelled

    async def emit(self, result: Result) -> None:
        """Sends any result; in an async generator `yield` does the same."""
        if not isinstance(result, Result):
            hint = "`yield delta(text)` sends a piece of the answer, `yield message(text)` all of it"
            raise RunFailure("runner.error", f"expected a result, got {type(result).__name__}; {hint}")
        if self._is_cancelled:
            raise asyncio.CancelledError("the run was cancelled")
        if self._is_ended:
            raise RunFailure("runner.error", f"`{result.type}` was sent after the end of the run")
        self._push(result)
        self._is_ended = result.is_terminal
        if self._sequence % TURN == 0:
            await asyncio.sleep(0)
        await self._outbox.room()

    async def delta(self, text: str) -> None:
        """Sends a piece of the answer."""
        await self.emit(results.delta(text))

    async def message(self, content: str | Sequence[protocol.ContentElement | Mapping[str, Any]]) -> None:
        """Sends the complete answer, with or without earlier deltas."""
        await self.emit(results.message(content))

    def set_usage(self, usage: Mapping[str, Any] | None) -> None:
        """Tokens and cost, sent with `run.completed`."""
        self._usage = usage

    async def call(self, method: str, **params: Any) -> Any:
        """Calls a method of the host by name, without the checks of the typed methods."""
        return await self._host.call(method, params)

    def _push(self, result: Result) -> None:
        params = {"run_id": self.run_id, "type": result.type, "data": result.data, "sequence": self._sequence + 1}
        if result.usage is not None:
            params["usage"] = result.usage
        try:
            line = encode({"jsonrpc": "2.0", "method": "run.result", "params": params})
        except NotJson as error:
            raise RunFailure("runner.error", f"the data of `{result.type}` is not JSON: {error}") from error
        except TooLarge as error:
            raise RunFailure("payload_too_large", f"`{result.type}` is too large: {error}") from error
        self._sequence += 1
        self._outbox.push(line)

    def _end(self, terminal: Result) -> None:
        """Sends the terminal result unless one was sent, and blocks everything after it."""
        if not self._is_ended:
            self._is_ended = True
            self._push(terminal)
        self._host.is_over = True
