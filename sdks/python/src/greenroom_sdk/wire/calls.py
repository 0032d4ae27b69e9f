"""Calls from a run to the host: sent, awaited, cancelled.

Invariant: every call ends: by its answer, at the run's deadline, by cancellation, with its run or with the
connection. A call that is no longer awaited is cancelled at the host with `request.cancel`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Any

from greenroom_sdk.errors import ApiError, HostError, InvalidArgument, PayloadTooLarge, refusal
from greenroom_sdk.wire.encoding import NotJson, TooLarge, encode
from greenroom_sdk.wire.outbox import Outbox

UNREAD_BYTES_MAX = 4 * 1024 * 1024


class Overflowed(HostError):
    """The items of a stream arrived faster than they were read."""


class Call:
    """One open call: its items, then its answer or its failure."""

    def __init__(self, calls: Calls, call_id: int, run_id: str) -> None:
        self._calls, self.id, self.run_id = calls, call_id, run_id
        self._items: deque[tuple[Any, int]] = deque()
        self._bytes = 0
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._filled: asyncio.Future[None] | None = None

    async def next_item(self) -> tuple[Any] | None:
        """The next item in a tuple, or `None` when the answer follows."""
        while not self._items and not self.answer.done():
            self._filled = asyncio.get_running_loop().create_future()
            await self._filled
        if not self._items:
            return None
        item, size = self._items.popleft()
        self._bytes -= size
        return (item,)

    def put(self, item: Any, size: int) -> None:
        if self._items and self._bytes + size > UNREAD_BYTES_MAX:
            self.fail(Overflowed("the items of the call were not read in time"))
            self.give_up()
            return
        self._items.append((item, size))
        self._bytes += size
        self._wake()

    def succeed(self, result: Any) -> None:
        if not self.answer.done():
            self.answer.set_result(result)
        self._wake()

    def fail(self, error: ApiError) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)
            self.answer.exception()  # Marks the exception as retrieved: the call may not be awaited any more.
        self._wake()

    def cancel(self) -> None:
        """Cancels the tasks that await it."""
        self.answer.cancel()
        if self._filled is not None:
            self._filled.cancel()

    def give_up(self) -> None:
        """Cancels the call at the host, unless it has answered."""
        if self._calls.forget(self):
            self._calls.say({"jsonrpc": "2.0", "method": "request.cancel", "params": {"request_id": self.id}})

    def _wake(self) -> None:
        if self._filled is not None and not self._filled.done():
            self._filled.set_result(None)


class Calls:
    """All calls of a connection."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._last_id = 0
        self._open: dict[int, Call] = {}
        self._is_closed = False

    async def open(self, run_id: str, method: str, params: Mapping[str, Any]) -> Call:
        """Sends a call, after waiting for room in the queue."""
        await self._outbox.room()
        self._last_id += 1
        message = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": {**params, "run_id": run_id}}
        try:
            line = encode(message)
        except NotJson as error:
            raise InvalidArgument(f"the parameters of `{method}` are not JSON: {error}") from error
        except TooLarge as error:
            raise PayloadTooLarge(f"the call of `{method}` is too large: {error}") from error
        if self._is_closed or not self._outbox.push(line):
            raise HostError("the host closed the connection")
        call = Call(self, self._last_id, run_id)
        self._open[call.id] = call
        return call

    def answered(self, call_id: Any, message: Mapping[str, Any]) -> bool:
        """Passes an answer to its call; false for an unknown id."""
        if isinstance(call_id, bool) or not isinstance(call_id, int) or not 0 < call_id <= self._last_id:
            return False
        call = self._open.pop(call_id, None)
        if call is not None:
            error = message.get("error")
            if isinstance(error, Mapping):
                call.fail(refusal(error))
            else:
                call.succeed(message.get("result"))
        return True

    def item(self, params: Mapping[str, Any], size: int) -> None:
        call_id = params.get("request_id")
        call = self._open.get(call_id) if isinstance(call_id, int) else None
        if call is not None:
            call.put(params.get("item"), size)

    def end_run(self, run_id: str) -> None:
        """Cancels the open calls of a run."""
        for call in [call for call in self._open.values() if call.run_id == run_id]:
            call.give_up()
            call.cancel()

    def close(self) -> None:
        """Fails every open call: the connection has ended."""
        self._is_closed = True
        open_calls, self._open = self._open, {}
        for call in open_calls.values():
            call.fail(HostError("the host closed the connection"))

    def forget(self, call: Call) -> bool:
        return self._open.pop(call.id, None) is not None

    def say(self, message: Mapping[str, Any]) -> None:
        self._outbox.push(encode(message))
