"""The native wire over WebSocket, for a runner that is not on the host's machine. Needs the extra `ws`.

Invariant: one message per frame; runs belong to one connection and end with it; a lost connection is made again with
growing pauses, a refused token is not tried twice.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from greenroom_sdk.errors import GreenroomError
from greenroom_sdk.plugin import CheckedPlugin
from greenroom_sdk.wire.connection import Connection
from greenroom_sdk.wire.encoding import RECEIVED_BYTES_MAX
from greenroom_sdk.wire.log import say

PATH = "/v1/runners/connect"
PAUSE_S_FIRST, PAUSE_S_MAX = 0.25, 30.0
PING_EVERY_S, SILENCE_S_MAX = 20.0, 40.0


async def serve(plugin: CheckedPlugin, url: str, token: str, busy: Callable[[int], None]) -> None:
    try:
        from websockets.asyncio.client import connect
        from websockets.exceptions import InvalidStatus
    except ImportError:
        raise GreenroomError("serve.extra", "install `greenroom-sdk[ws]` to connect over WebSocket") from None
    address, pause = _address(url), PAUSE_S_FIRST
    while True:
        try:
            async with connect(
                address,
                additional_headers={"Authorization": f"Bearer {token}"},
                max_size=RECEIVED_BYTES_MAX,
                ping_interval=PING_EVERY_S,
                ping_timeout=SILENCE_S_MAX,
                compression=None,
            ) as socket:
                is_over, was_used = await _talk(plugin, socket, busy)
                if is_over:
                    return
                pause = PAUSE_S_FIRST if was_used else pause
                say("the connection to the host was lost")
        except InvalidStatus as error:
            if error.response.status_code in (401, 403):
                raise GreenroomError("serve.token", "the host refused the runner's token") from None
            say(f"cannot reach the host: {error}")
        except (OSError, TimeoutError, asyncio.TimeoutError) as error:
            say(f"cannot reach the host: {error or type(error).__name__}")
        # Between half and all of the pause, so that many runners do not come back at the same moment.
        await asyncio.sleep(pause * random.uniform(0.5, 1.0))
        pause = min(pause * 2, PAUSE_S_MAX)


async def _talk(plugin: CheckedPlugin, socket: Any, busy: Callable[[int], None]) -> tuple[bool, bool]:
    """Whether the host asked for the end, and whether it said anything."""
    connection = Connection(plugin, busy)
    was_used = False

    async def read() -> None:
        nonlocal was_used
        async for frame in socket:
            was_used = True
            connection.receive(frame)

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
    return is_over, was_used


def _address(url: str) -> str:
    """`http` and `https` are taken as `ws` and `wss`, so that one address serves all commands."""
    parts = urlsplit(url)
    scheme = {"ws": "ws", "http": "ws", "wss": "wss", "https": "wss"}.get(parts.scheme)
    if scheme is None or not parts.netloc:
        raise GreenroomError("serve.address", f"`{url}` is not the address of a host")
    path = PATH if parts.path in ("", "/") else parts.path
    return f"{scheme}://{parts.netloc}{path}"
