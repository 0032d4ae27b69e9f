"""The native wire over stdin and stdout: one message per line.

Invariant: ends when the host closes its side or requests shutdown, after all queued lines were written; or at once
when the host stops reading.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable

from greenroom_sdk.plugin import CheckedPlugin
from greenroom_sdk.wire.connection import Connection
from greenroom_sdk.wire.encoding import RECEIVED_BYTES_MAX
from greenroom_sdk.wire.lines import Lines
from greenroom_sdk.wire.log import say

READ_BYTES = 256 * 1024


async def serve(plugin: CheckedPlugin, reading: int, writing: int, busy: Callable[[int], None]) -> None:
    connection = Connection(plugin, busy)
    reader = asyncio.ensure_future(_read(connection, reading))
    writer = asyncio.ensure_future(_write(connection, writing))
    # The writer ends when the host stops reading, the reader when it stops writing.
    await asyncio.wait({reader, writer, connection.ended}, return_when=asyncio.FIRST_COMPLETED)
    if writer.done():
        connection.abandon()
    shutdown_id = connection.ended.result() if connection.ended.done() else None
    await connection.drain(shutdown_id)
    reader.cancel()
    await asyncio.wait({reader, writer})
    for task in (reader, writer):
        if not task.cancelled() and (error := task.exception()) is not None:
            say(f"the connection to the host broke: {error}")


async def _read(connection: Connection, descriptor: int) -> None:
    """Returns at the end of the input; cancelled on `shutdown`."""
    lines = Lines(RECEIVED_BYTES_MAX)
    loop = asyncio.get_running_loop()
    if not _is_pipe(descriptor):
        while data := await loop.run_in_executor(None, os.read, descriptor, READ_BYTES):
            for line in lines.of(data):
                connection.receive(line)
        return
    protocol = _Reader(connection, lines)
    transport, _ = await loop.connect_read_pipe(lambda: protocol, os.fdopen(descriptor, "rb", buffering=0))
    try:
        await protocol.ended
    finally:
        transport.close()


async def _write(connection: Connection, descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    if not _is_pipe(descriptor):
        async for batch in connection.outbox.batches():
            await loop.run_in_executor(None, _write_all, descriptor, b"\n".join([*batch, b""]))
        return
    protocol = _Writer()
    transport, _ = await loop.connect_write_pipe(lambda: protocol, os.fdopen(descriptor, "wb", buffering=0))
    transport.set_write_buffer_limits(high=READ_BYTES)
    try:
        async for batch in connection.outbox.batches():
            transport.write(b"\n".join([*batch, b""]))
            await protocol.drained()
            if protocol.is_lost:
                return
        transport.set_write_buffer_limits(high=0)
        await protocol.drained()
    finally:
        transport.close()


class _Reader(asyncio.Protocol):
    def __init__(self, connection: Connection, lines: Lines) -> None:
        self._connection, self._lines = connection, lines
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        try:
            for line in self._lines.of(data):
                self._connection.receive(line)
        except OverflowError as error:
            self._end(error)

    def connection_lost(self, error: Exception | None) -> None:
        self._end(error)

    def _end(self, error: Exception | None) -> None:
        if self.ended.done():
            return
        if error is None:
            self.ended.set_result(None)
        else:
            self.ended.set_exception(error)


class _Writer(asyncio.BaseProtocol):
    """Tracks whether the pipe is full."""

    def __init__(self) -> None:
        self._drained: asyncio.Future[None] | None = None
        self.is_lost = False

    def pause_writing(self) -> None:
        self._drained = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        self.is_lost = True
        self.resume_writing()

    async def drained(self) -> None:
        if self._drained is not None and not self.is_lost:
            await self._drained


def _is_pipe(descriptor: int) -> bool:
    """Pipes are read and written by the event loop; files and terminals by a thread."""
    mode = os.fstat(descriptor).st_mode
    return os.name == "posix" and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
