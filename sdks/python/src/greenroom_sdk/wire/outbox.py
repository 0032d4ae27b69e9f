"""The queue of lines between senders and the writer.

Invariant: lines are written in the order they were pushed; senders wait while more than `QUEUED_BYTES_MAX` are
queued, so that a slow host slows the runs instead of filling the memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

QUEUED_BYTES_MAX = 256 * 1024


class Outbox:
    """Belongs to one connection and is used on its event loop only."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._bytes = 0
        self._is_closed = False
        self._filled: asyncio.Future[None] | None = None
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    def push(self, line: bytes) -> bool:
        """Appends a line without waiting; false when the queue is closed."""
        if self._is_closed:
            return False
        self._lines.append(line)
        self._bytes += len(line)
        self._wake_writer()
        return True

    async def room(self) -> None:
        """Waits while too much is queued."""
        while self._bytes > QUEUED_BYTES_MAX and not self._is_closed:
            waiting = asyncio.get_running_loop().create_future()
            self._waiting.append(waiting)
            await waiting

    async def batches(self) -> AsyncIterator[list[bytes]]:
        """For the writer: batches of queued lines until the queue is closed and empty."""
        while self._lines or not self._is_closed:
            if not self._lines:
                self._filled = asyncio.get_running_loop().create_future()
                await self._filled
                continue
            batch, self._lines, self._bytes = self._lines, [], 0
            yield batch
            self._wake_speakers()

    def close(self) -> None:
        """Accepts no more lines; queued ones are still written."""
        self._is_closed = True
        self._wake_writer()
        self._wake_speakers()

    def _wake_writer(self) -> None:
        if self._filled is not None and not self._filled.done():
            self._filled.set_result(None)

    def _wake_speakers(self) -> None:
        if self._bytes <= QUEUED_BYTES_MAX or self._is_closed:
            waiting, self._waiting = self._waiting, []
            for speaker in waiting:
                if not speaker.done():
                    speaker.set_result(None)
