"""Shared parts of the tests of remote runners: a plugin, a scripted host, counted delays."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection

from greenroom_sdk import Plugin, Result, RunCtx, message
from greenroom_sdk.wire import websocket

RUNNER = {"runner_id": "plugin:tests/far/default", "runner_name": "default"}
INITIALIZE = {"protocol_version": "1", "host": {"name": "tests", "version": "0"}}


class Enough(Exception):
    """The runner has backed off as often as the test needs."""


def far() -> Plugin:
    plugin = Plugin("tests", "far")

    @plugin.runner()
    async def run(ctx: RunCtx) -> AsyncIterator[Result]:
        yield message(ctx.text)

    @plugin.tool()
    async def hum() -> str:
        """Hums"""
        return "hm"

    return plugin


async def serve(url: str, token: str = "secret") -> None:
    await websocket.serve(far().checked(), url, token, lambda runs: None)


def count_pauses(monkeypatch: pytest.MonkeyPatch, pauses_max: int) -> list[float]:
    """The delays of the runner; the last one raises `Enough`."""
    pauses: list[float] = []

    async def rest(pause: float) -> None:
        pauses.append(pause)
        if len(pauses) == pauses_max:
            raise Enough

    monkeypatch.setattr(websocket, "_back_off", rest)
    return pauses


async def ask(socket: ServerConnection, request_id: int, method: str, params: Any) -> list[Any]:
    """All messages up to the answer."""
    await socket.send(json.dumps({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}))
    found = []
    async for frame in socket:
        found.append(json.loads(frame))
        if found[-1].get("id") == request_id:
            break
    return found


async def admit(socket: ServerConnection) -> None:
    """The first messages of a host that accepts the runner."""
    await ask(socket, 1, "initialize", INITIALIZE)
    await ask(socket, 2, "list_agent_runners", {})
    await ask(socket, 3, "list_tools", {})


class Door:
    """Accepts connections, records their requests, and answers each with its next answer, then the last one."""

    def __init__(self, *answers: bytes) -> None:
        self.answers, self.heard, self.url = list(answers), list[bytes](), ""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Door]:
        async with await asyncio.start_server(self._answer, "127.0.0.1", 0) as server:
            self.url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            yield self

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heard.append(await reader.read(65536))
        answer = self.answers[min(len(self.heard), len(self.answers)) - 1]
        writer.write(answer.replace(b"DOOR", self.url.encode()))
        writer.close()


def http(status: str, body: str = "", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body)}", "", body]
    return "\r\n".join(lines).encode()
