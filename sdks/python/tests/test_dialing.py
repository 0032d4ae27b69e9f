"""Failures to reach a host: error messages and retries, over real sockets."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection
from websockets.asyncio.server import serve as listen

from greenroom_sdk import GreenroomError
from greenroom_sdk.wire import dialing
from remote import Door, Enough, admit, ask, count_pauses, http, serve

PROXIES = ("ws_proxy", "wss_proxy", "socks_proxy", "https_proxy", "http_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def without_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def knock(door: Door, url: str | None = None) -> GreenroomError | None:
    """The error that ended the runner; `None` if it would have continued."""

    async def scenario() -> GreenroomError | None:
        async with door.open():
            try:
                await asyncio.wait_for(serve(url or door.url), 20)
            except Enough:
                return None
            except GreenroomError as error:
                return error
        raise AssertionError("it ended well")

    return asyncio.run(scenario())


def test_a_handshake_that_is_cut_off_or_answered_with_junk_is_tried_again_with_growing_pauses(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pauses = count_pauses(monkeypatch, 6)
    door = Door(
        b"",
        b"\x15\x03\x01\x00\x02\x02\x46",
        b"junk\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgr",
        http("101 Switching Protocols", "", "Connection: Upgrade", "Upgrade: websocket"),
        http("101 Switching Protocols", "", "Connection: Upgrade", "Upgrade: h2c\x07"),
    )
    assert knock(door) is None
    lost = f"greenroom-sdk: cannot reach the host at `{door.url}`: "
    malformed = lost + "did not receive a valid HTTP response"
    missing = lost + "missing Sec-WebSocket-Accept header"
    assert capsys.readouterr().err.splitlines() == [malformed] * 4 + [missing, malformed]
    assert pauses == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (http("409 Conflict"), "HTTP 409"),
        (http("429 Too Many Requests", '{"error":{"message":"slow\\ndown"}}'), "HTTP 429: slow down"),
        (http("500 Internal Server Error", '{"error":"no object"}'), "HTTP 500"),
        (http("502 Bad Gateway", "<html>"), "HTTP 502"),
        (http("503 Service Unavailable", "[" * 100_000), "HTTP 503"),
    ],
)
def test_a_host_that_cannot_now_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answer: bytes, told: str
) -> None:
    pauses = count_pauses(monkeypatch, 2)
    door = Door(answer)
    assert knock(door) is None
    assert capsys.readouterr().err == f"greenroom-sdk: cannot reach the host at `{door.url}`: {told}\n" * 2
    assert pauses == [0.25, 0.5]


NO_HOST = "no host at `DOOR` ({}): `GREENROOM_URL` is the host's address, without a path"


@pytest.mark.parametrize(
    ("answer", "code", "told"),
    [
        (
            http("401 Unauthorized"),
            "serve.token",
            "the host refused the runner's token: `GREENROOM_RUNNER_TOKEN` must be the same as "
            "`[runners.NAME] token` in the host's configuration",
        ),
        (
            http("403 Forbidden", '{"error":{"message":"`Host` is not an allowed host name"}}'),
            "serve.refused",
            "the host refused the runner: `Host` is not an allowed host name",
        ),
        (http("403 Forbidden"), "serve.refused", "the host refused the runner: HTTP 403"),
        (http("404 Not Found"), "serve.address", NO_HOST.format("HTTP 404")),
        (http("200 OK", "<html>"), "serve.address", NO_HOST.format("HTTP 200")),
        (http("302 Found"), "serve.address", NO_HOST.format("HTTP 302")),
    ],
)
def test_what_trying_again_cannot_help_ends_the_runner_at_once(answer: bytes, code: str, told: str) -> None:
    door = Door(answer)
    error = knock(door)
    assert error is not None
    assert (error.code, error.message) == (code, told.replace("DOOR", door.url))
    assert len(door.heard) == 1


@pytest.mark.parametrize("target", ["DOOR/elsewhere", "https://other.example/", "/v1/runners"])
def test_a_redirect_is_told_and_gets_no_token(target: str) -> None:
    door = Door(http("308 Permanent Redirect", "", f"Location: {target}"))
    error = knock(door)
    assert error is not None
    target = target.replace("DOOR", door.url)
    told = f"`{door.url}` redirects to `{target}`: set `GREENROOM_URL` to the address of the host itself"
    assert (error.code, error.message) == ("serve.address", told)
    assert len(door.heard) == 1


def test_a_proxy_without_its_host_is_waited_for_where_a_host_was_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gateway answers 404 until it knows the host."""
    pauses = count_pauses(monkeypatch, 9)
    requests = []

    def gateway(socket: ServerConnection, request: Any) -> Any:
        requests.append(request.path)
        return socket.respond(HTTPStatus.NOT_FOUND, "no route\n") if len(requests) in (2, 3) else None

    async def host(socket: ServerConnection) -> None:
        await admit(socket)
        if len(requests) > 1:
            await ask(socket, 4, "shutdown", {})

    async def scenario() -> None:
        async with listen(host, "127.0.0.1", 0, process_request=gateway) as server:
            await asyncio.wait_for(serve(f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"), 20)

    asyncio.run(scenario())
    assert requests == ["/v1/runners/connect"] * 4
    assert pauses == [0.25, 0.5, 1.0]


def test_a_host_that_never_answers_the_handshake_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    count_pauses(monkeypatch, 1)
    monkeypatch.setattr(dialing, "OPEN_S_MAX", 0.05)

    async def scenario() -> str:
        silent = asyncio.Event()

        async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await silent.wait()
            writer.close()

        async with await asyncio.start_server(say_nothing, "127.0.0.1", 0) as server:
            url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            with pytest.raises(Enough):
                await serve(url)
            silent.set()
            return url

    url = asyncio.run(scenario())
    told = f"greenroom-sdk: cannot reach the host at `{url}`: timed out during opening handshake\n"
    assert capsys.readouterr().err == told


def test_nobody_at_the_address_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    count_pauses(monkeypatch, 1)
    with pytest.raises(Enough):
        asyncio.run(serve("ws://127.0.0.1:1"))
    line = capsys.readouterr().err
    assert line.startswith("greenroom-sdk: cannot reach the host at `ws://127.0.0.1:1`: ")
    assert line.count("\n") == 1


def test_tls_to_a_host_without_it_ends_the_runner() -> None:
    door = Door(http("400 Bad Request"))

    async def scenario() -> None:
        async with door.open():
            await serve(door.url.replace("ws://", "wss://"))

    with pytest.raises(GreenroomError) as found:
        asyncio.run(scenario())
    address = door.url.replace("ws://", "wss://")
    assert found.value.message == f"`{address}` does not speak TLS; without it the address begins with `ws://`"


def test_a_certificate_is_checked_against_those_that_are_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    openssl = shutil.which("openssl") or pytest.skip("there is no `openssl` to make a certificate with")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    made = ["-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([openssl, "req", "-x509", *names, *made], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    async def host(socket: ServerConnection) -> None:
        await admit(socket)
        await ask(socket, 4, "shutdown", {})

    async def scenario() -> str:
        async with listen(host, "127.0.0.1", 0, ssl=context) as server:
            url = f"wss://localhost:{server.sockets[0].getsockname()[1]}"
            with pytest.raises(GreenroomError) as found:
                await serve(url)
            told = f"the certificate of `{url}` is not trusted: self-signed certificate"
            assert (found.value.code, found.value.message) == ("serve.tls", told)
            monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
            await asyncio.wait_for(serve(url), 20)
            return url

    url = asyncio.run(scenario())
    assert capsys.readouterr().err == f"greenroom-sdk: connected to {url} as tests/far\n"


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (http("502 Bad Gateway"), "the proxy refused to connect to the host: HTTP 502"),
        (b"junk\r\n", "cannot reach the host through the proxy: did not receive a valid HTTP response from proxy"),
        (b"", "cannot reach the host through the proxy: did not receive a valid HTTP response from proxy"),
    ],
)
def test_a_proxy_that_fails_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answer: bytes, told: str
) -> None:
    count_pauses(monkeypatch, 2)
    door = Door(answer)

    async def scenario() -> None:
        async with door.open():
            monkeypatch.setenv("ws_proxy", door.url.replace("ws://", "http://user:hunter2@"))
            await asyncio.wait_for(serve("ws://host.example"), 20)

    with pytest.raises(Enough):
        asyncio.run(scenario())
    assert capsys.readouterr().err == f"greenroom-sdk: {told}\n" * 2
    assert door.heard[0].startswith(b"CONNECT host.example:80 ")


def test_a_proxy_that_wants_another_password_ends_the_runner(monkeypatch: pytest.MonkeyPatch) -> None:
    door = Door(http("407 Proxy Authentication Required"))

    async def scenario() -> None:
        async with door.open():
            monkeypatch.setenv("ws_proxy", door.url.replace("ws://", "http://user:hunter2@"))
            await serve("ws://host.example")

    with pytest.raises(GreenroomError) as found:
        asyncio.run(scenario())
    assert (found.value.code, found.value.message) == (
        "serve.proxy",
        "the proxy refused to connect to the host: HTTP 407",
    )


@pytest.mark.parametrize(
    ("proxy", "told"),
    [
        ("ftp://user:hunter2@127.0.0.1", "invalid proxy in the environment: scheme ftp isn't supported"),
        ("http://user@127.0.0.1", "invalid proxy in the environment: username provided without password"),
        ("http://user:hunter2", "cannot connect to `ws://host.example`: ValueError: the proxy of the environment"),
    ],
)
def test_a_proxy_that_is_none_ends_the_runner_without_showing_its_password(
    monkeypatch: pytest.MonkeyPatch, proxy: str, told: str
) -> None:
    monkeypatch.setenv("ws_proxy", proxy)
    with pytest.raises(GreenroomError) as found:
        asyncio.run(serve("ws://host.example"))
    assert found.value.message == told
