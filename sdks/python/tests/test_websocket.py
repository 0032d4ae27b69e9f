"""A runner on another machine: a real WebSocket, a bearer token, connections that are lost or refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection
from websockets.asyncio.server import serve as listen

from greenroom_sdk.testing.context import context
from greenroom_sdk.wire import websocket
from remote import INITIALIZE, RUNNER, Enough, admit, ask, count_pauses, serve


def serve_with(host: Any) -> str:
    """Serves with this host until one of them ends; yields the host's address."""

    async def scenario() -> str:
        async with listen(host, "127.0.0.1", 0, max_size=None) as server:
            url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            try:
                await asyncio.wait_for(serve(url), 20)
            except Enough:
                pass
            return url

    return asyncio.run(scenario())


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

    serve_with(host)
    greeting = ("/v1/runners/connect", "Bearer secret")
    kinds = ["message.completed", "run.completed", None]
    assert seen == [greeting, kinds, greeting, kinds, [{"jsonrpc": "2.0", "id": 2, "result": {}}]]


def test_each_connection_is_told_once_the_host_has_taken_the_runner(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    count_pauses(monkeypatch, 5)
    connections: list[ServerConnection] = []

    async def host(socket: ServerConnection) -> None:
        connections.append(socket)
        await admit(socket)
        if len(connections) == 2:
            await ask(socket, 4, "shutdown", {})

    url = serve_with(host)
    assert capsys.readouterr().err.splitlines() == [
        f"greenroom-sdk: connected to {url} as tests/far",
        "greenroom-sdk: the connection to the host was lost",
        f"greenroom-sdk: reconnected to {url} as tests/far",
    ]


@pytest.mark.parametrize(
    ("code", "reason", "line"),
    [
        (1008, "runner `far` is connected already", "the host refused the runner: runner `far` is connected already"),
        (4000, "é" * 61, f"the host refused the runner: {'é' * 61}"),
        (4999, "two\nlines\x1b[2J", "the host refused the runner: two lines [2J"),
        (4001, "", "the host refused the runner: it closed the connection with 4001"),
        (1012, "the host starts anew", "the connection to the host was lost: the host starts anew"),
        (3999, "", "the connection to the host was lost"),
    ],
)
def test_a_refusal_is_told_in_the_words_of_the_host_and_is_not_taken_for_a_connection(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], code: int, reason: str, line: str
) -> None:
    pauses = count_pauses(monkeypatch, 3)

    async def host(socket: ServerConnection) -> None:
        await ask(socket, 1, "initialize", INITIALIZE)
        await socket.close(code, reason)

    serve_with(host)
    assert capsys.readouterr().err.splitlines() == [f"greenroom-sdk: {line}"] * 3
    assert pauses == [0.25, 0.5, 1.0]


def test_pauses_grow_up_to_a_limit_while_a_connection_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses = count_pauses(monkeypatch, 9)
    serve_with(admit)
    assert pauses == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("run_agent", {**RUNNER, "context": context("r1", "hello", {})}),
        ("call_tool", {"tool_call_id": "c1", "tool_name": "hum", "parameters": {}}),
    ],
)
def test_pauses_begin_anew_after_a_run_or_a_call_but_not_after_a_malformed_one(
    monkeypatch: pytest.MonkeyPatch, method: str, params: dict[str, Any]
) -> None:
    pauses = count_pauses(monkeypatch, 4)
    answers: list[Any] = []

    async def host(socket: ServerConnection) -> None:
        await admit(socket)
        if len(pauses) == 1:
            answers.extend(await ask(socket, 4, method, {}))
        if len(pauses) == 2:
            answers.extend(await ask(socket, 4, method, params))

    serve_with(host)
    assert answers[0]["error"]["code"] == -32602
    assert "result" in answers[-1]
    assert pauses == [0.25, 0.5, 0.25, 0.5]


def test_pauses_begin_anew_after_a_connection_that_held_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "SETTLED_S", 0.0)
    pauses = count_pauses(monkeypatch, 3)
    serve_with(admit)
    assert pauses == [0.25, 0.25, 0.25]
