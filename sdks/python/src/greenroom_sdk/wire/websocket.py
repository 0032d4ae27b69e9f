"""The native wire over WebSocket, for a runner on another machine. Needs the extra `ws`.

Invariant: one message per frame; runs belong to one connection and end with it; a lost connection is reopened with
increasing delays, a refused token is not retried.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

from greenroom_sdk.errors import GreenroomError
from greenroom_sdk.plugin import CheckedPlugin
from greenroom_sdk.wire.address import check_token, read_address
from greenroom_sdk.wire.connection import Connection
from greenroom_sdk.wire.log import one_line, say

PAUSE_S_FIRST, PAUSE_S_MAX = 0.25, 30.0
SETTLED_S = 60.0
"""A connection of this length resets the delay, even without a run."""
POLICY_VIOLATION, REFUSALS = 1008, range(4000, 5000)
"""Close codes with which a host refuses the runner; the reason is human-readable."""


async def serve(plugin: CheckedPlugin, url: str, token: str, busy: Callable[[int], None]) -> None:
    try:
        from greenroom_sdk.wire.dialing import dial
    except ImportError:
        raise GreenroomError("serve.extra", "install `greenroom-sdk[ws]` to connect over WebSocket") from None
    address = read_address(url)
    check_token(token)
    loop, pause, is_known = asyncio.get_running_loop(), PAUSE_S_FIRST, False
    greeting = f"to {address.shown} as {plugin.identity['author']}/{plugin.identity['name']}"
    connected = "connected"

    def admitted() -> None:
        nonlocal connected
        say(f"{connected} {greeting}")
        connected = "reconnected"

    while True:
        try:
            socket = await dial(address, token, is_known=is_known)
        except GreenroomError as failure:
            if not failure.retryable:
                raise
            say(failure.message)
        else:
            is_known, since = True, loop.time()
            connection = Connection(plugin, busy)
            async with socket:
                if await _serve_connection(connection, socket, admitted):
                    return
            say(_close_reason(socket))
            if connection.was_used or loop.time() - since >= SETTLED_S:
                pause = PAUSE_S_FIRST
        await _back_off(pause)
        pause = min(pause * 2, PAUSE_S_MAX)


async def _serve_connection(connection: Connection, socket: Any, admitted: Callable[[], None]) -> bool:
    """Returns whether the host requested shutdown."""

    async def read() -> None:
        was_admitted = False
        async for frame in socket:
            connection.receive(frame)
            if connection.is_admitted and not was_admitted:
                was_admitted = True
                admitted()

    async def write() -> None:
        async for batch in connection.outbox.batches():
            for line in batch:
                await socket.send(line.decode("utf-8"))

    reader, writer = asyncio.ensure_future(read()), asyncio.ensure_future(write())
    await asyncio.wait({reader, writer, connection.ended}, return_when=asyncio.FIRST_COMPLETED)
    is_over = connection.ended.done()
    if is_over:
        await connection.drain(connection.ended.result())
        await asyncio.wait({writer})
    connection.abandon()
    for task in (reader, writer):
        task.cancel()
    await asyncio.gather(reader, writer, return_exceptions=True)
    return is_over


def _close_reason(socket: Any) -> str:
    """Why a connection was closed."""
    code, reason = socket.close_code, one_line(socket.close_reason or "")
    if code == POLICY_VIOLATION or code in REFUSALS:
        return f"the host refused the runner: {reason or f'it closed the connection with {code}'}"
    return "the connection to the host was lost" + (f": {reason}" if reason else "")


async def _back_off(pause: float) -> None:
    """Sleeps for half to all of the delay, so that many runners do not reconnect at the same moment."""
    await asyncio.sleep(pause * random.uniform(0.5, 1.0))
