"""Connects to a host over WebSocket and classifies failures. Needs the extra `ws`.

Invariant: every failure is a one-line `GreenroomError`; it is `retryable` unless a retry cannot help. The token is
sent to the given host only, never to a redirect target.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidHandshake, InvalidProxy, InvalidProxyStatus, InvalidStatus, ProxyError

from greenroom_sdk.errors import GreenroomError
from greenroom_sdk.wire.address import TOKEN, URL, Address
from greenroom_sdk.wire.encoding import RECEIVED_BYTES_MAX
from greenroom_sdk.wire.log import one_line

OPEN_S_MAX, PING_EVERY_S, SILENCE_S_MAX = 10.0, 20.0, 40.0
TEMPORARY = (408, 409, 425, 429)
"""4xx statuses that are temporary."""
NOT_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE")
"""OpenSSL's reasons for an answer that is not TLS."""


class _NoRedirect(connect):
    """Follows no redirect."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


async def dial(address: Address, token: str, *, is_known: bool) -> ClientConnection:
    """`is_known`: this address worked before, so a failure may be temporary, such as a restart of a proxy."""
    try:
        return await _NoRedirect(
            address.url,
            additional_headers={"Authorization": f"Bearer {token}"},
            max_size=RECEIVED_BYTES_MAX,
            open_timeout=OPEN_S_MAX,
            ping_interval=PING_EVERY_S,
            ping_timeout=SILENCE_S_MAX,
            compression=None,
        )
    except Exception as error:
        raise _failure(error, address, is_known) from None


def _failure(error: Exception, address: Address, is_known: bool) -> GreenroomError:
    def wrong(code: str, text: str) -> GreenroomError:
        return GreenroomError(code, text, retryable=is_known)

    if isinstance(error, InvalidStatus):
        return _http_answer(error, address, is_known)
    if isinstance(error, ssl.SSLCertVerificationError):
        return wrong("serve.tls", f"the certificate of `{address.shown}` is not trusted: {error.verify_message}")
    if isinstance(error, ssl.SSLError) and error.reason in NOT_TLS:
        return wrong("serve.tls", f"`{address.shown}` does not speak TLS; without it the address begins with `ws://`")
    if isinstance(error, (ProxyError, InvalidProxy, ImportError)):
        return _proxy(error, is_known)
    if isinstance(error, (OSError, TimeoutError, asyncio.TimeoutError, InvalidHandshake)):
        return _unreachable(address, one_line(str(error)) or type(error).__name__)
    # The address was checked before, so an invalid one is the proxy's; it may contain a password.
    message = "the proxy of the environment" if isinstance(error, ValueError) else one_line(str(error))
    return wrong("serve.failed", f"cannot connect to `{address.shown}`: {type(error).__name__}: {message}")


def _unreachable(address: Address, why: str) -> GreenroomError:
    return GreenroomError("serve.unreachable", f"cannot reach the host at `{address.shown}`: {why}", retryable=True)


def _http_answer(error: InvalidStatus, address: Address, is_known: bool) -> GreenroomError:
    """The server at the address answered with HTTP instead of WebSocket."""
    status, message = error.response.status_code, _message_of(error.response.body)
    if status == 401:
        hint = f"`{TOKEN}` must be the same as `[runners.NAME] token` in the host's configuration"
        return GreenroomError("serve.token", f"the host refused the runner's token: {hint}")
    if status == 403:
        return GreenroomError("serve.refused", f"the host refused the runner: {message or 'HTTP 403'}")
    if 300 <= status < 400 and (target := error.response.headers.get_all("Location")):
        text = f"`{address.shown}` redirects to `{one_line(target[0])}`: set `{URL}` to the address of the host itself"
        return GreenroomError("serve.address", text, retryable=is_known)
    answer = f"HTTP {status}" + (f": {message}" if message else "")
    if status >= 500 or status in TEMPORARY:
        return _unreachable(address, answer)
    text = f"no host at `{address.shown}` ({answer}): `{URL}` is the host's address, without a path"
    return GreenroomError("serve.address", text, retryable=is_known)


def _proxy(error: Exception, is_known: bool) -> GreenroomError:
    """A failure of the proxy set in the environment. Its address may contain a password and is not shown."""
    if isinstance(error, InvalidProxyStatus):
        status = error.response.status_code
        text = f"the proxy refused to connect to the host: HTTP {status}"
        return GreenroomError("serve.proxy", text, retryable=is_known or status not in (403, 407))
    if isinstance(error, ProxyError):
        text = f"cannot reach the host through the proxy: {one_line(str(error))}"
        return GreenroomError("serve.proxy", text, retryable=True)
    text = error.msg if isinstance(error, InvalidProxy) else str(error)
    return GreenroomError("serve.proxy", f"invalid proxy in the environment: {one_line(text)}")


def _message_of(body: bytes | bytearray | None) -> str:
    """The host's error message."""
    try:
        answer: Any = json.loads(body or b"")
        return one_line(answer["error"]["message"])
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return ""
