"""A runner on another machine: a real WebSocket, a bearer token, connections that are lost."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve

from greenroom_sdk import GreenroomError, Plugin, Result, RunCtx, message
from greenroom_sdk.testing.context import context
from greenroom_sdk.wire import websocket

RUNNER = {"runner_id": "plugin:tests/far/default", "runner_name": "default"}


def far() -> Plugin:
    plugin = Plugin("tests", "far")

    @plugin.runner()
    async def run(ctx: RunCtx) -> AsyncIterator[Result]:
        yield message(ctx.text)

    return plugin


async def ask(socket: ServerConnection, request_id: int, method: str, params: Any) -> list[Any]:
    """All messages up to the answer."""
    await socket.send(json.dumps({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}))
    found = []
    async for frame in socket:
        found.append(json.loads(frame))
        if found[-1].get("id") == request_id:
            break
    return found


def test_a_lost_connection_is_made_again_and_shutdown_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "PAUSE_S_FIRST", 0.01)
    seen: list[Any] = []

    async def host(socket: ServerConnection) -> None:
        assert socket.request is not None
        seen.append((socket.request.path, socket.request.headers["Authorization"]))
        big = "x" * 3_000_000
        found = await ask(socket, 1, "run_agent", {**RUNNER, "context": context("r1", big, {})})
        seen.append([one.get("params", {}).get("type") for one in found])
        assert found[0]["params"]["data"]["message"]["content"] == big
        if len(seen) > 2:
            seen.append(await ask(socket, 2, "shutdown", {}))
        else:
            await socket.close()

    async def scenario() -> None:
        async with serve(host, "127.0.0.1", 0, max_size=None) as server:
            port = server.sockets[0].getsockname()[1]
            url = f"http://127.0.0.1:{port}"
            await asyncio.wait_for(websocket.serve(far().checked(), url, "secret", lambda runs: None), 20)

    asyncio.run(scenario())
    greeting = ("/v1/runners/connect", "Bearer secret")
    kinds = ["message.completed", "run.completed", None]
    assert seen == [greeting, kinds, greeting, kinds, [{"jsonrpc": "2.0", "id": 2, "result": {}}]]


def test_a_refused_token_is_not_tried_twice() -> None:
    attempts = []

    async def scenario() -> None:
        def refuse(socket: ServerConnection, request: Any) -> Any:
            attempts.append(request.path)
            return socket.respond(HTTPStatus.UNAUTHORIZED, "no\n")

        async def never(socket: ServerConnection) -> None:
            raise AssertionError

        async with serve(never, "127.0.0.1", 0, process_request=refuse) as server:
            port = server.sockets[0].getsockname()[1]
            await websocket.serve(far().checked(), f"ws://127.0.0.1:{port}", "wrong", lambda runs: None)

    with pytest.raises(GreenroomError, match="the host refused the runner's token"):
        asyncio.run(scenario())
    assert len(attempts) == 1


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(GreenroomError, match="`host.example` is not the address of a host"):
        asyncio.run(websocket.serve(far().checked(), "host.example", "t", lambda runs: None))
