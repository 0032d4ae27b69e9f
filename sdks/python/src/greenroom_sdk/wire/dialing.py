"""Reaching a host over WebSocket, and what it means when that fails. Needs the extra `ws`.

Invariant: whatever fails comes out as a `GreenroomError` of one line; it is `retryable` unless trying again cannot
help. The token is sent to the host of the address and to nobody it redirects to.
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
PASSING = (408, 409, 425, 429)
"""Refusals among the 4xx that are about this moment and not about the request."""
NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE")
"""How OpenSSL calls an answer that is none of TLS."""


class _Straight(connect):
    """Follows no redirect."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


async def dial(address: Address, token: str, *, is_known: bool) -> ClientConnection:
    """`is_known` when a host was at this address before: then what is wrong now may pass, as in a proxy's restart."""
    try:
        return await _Straight(
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
        return _answered(error, address, is_known)
    if isinstance(error, ssl.SSLCertVerificationError):
        return wrong("serve.tls", f"the certificate of `{address.shown}` is not trusted: {error.verify_message}")
    if isinstance(error, ssl.SSLError) and error.reason in NO_TLS:
        return wrong("serve.tls", f"`{address.shown}` does not speak TLS; without it the address begins with `ws://`")
    if isinstance(error, (ProxyError, InvalidProxy, ImportError)):
        return _proxy(error, is_known)
    if isinstance(error, (OSError, TimeoutError, asyncio.TimeoutError, InvalidHandshake)):
        return _unreachable(address, one_line(str(error)) or type(error).__name__)
    # The address was checked before, so a text that cannot be read is the proxy's; it may be part of a password.
    told = "the proxy of the environment" if isinstance(error, ValueError) else one_line(str(error))
    return wrong("serve.failed", f"cannot connect to `{address.shown}`: {type(error).__name__}: {told}")


def _unreachable(address: Address, why: str) -> GreenroomError:
    return GreenroomError("serve.unreachable", f"cannot reach the host at `{address.shown}`: {why}", retryable=True)


def _answered(error: InvalidStatus, address: Address, is_known: bool) -> GreenroomError:
    """The host, or whatever is at its address, answered with HTTP instead of WebSocket."""
    status, told = error.response.status_code, _told(error.response.body)
    if status == 401:
        hint = f"`{TOKEN}` must be the same as `[runners.NAME] token` in the host's configuration"
        return GreenroomError("serve.token", f"the host refused the runner's token: {hint}")
    if status == 403:
        return GreenroomError("serve.refused", f"the host refused the runner: {told or 'HTTP 403'}")
    if 300 <= status < 400 and (target := error.response.headers.get_all("Location")):
        text = f"`{address.shown}` redirects to `{one_line(target[0])}`: set `{URL}` to the address of the host itself"
        return GreenroomError("serve.address", text, retryable=is_known)
    answer = f"HTTP {status}" + (f": {told}" if told else "")
    if status >= 500 or status in PASSING:
        return _unreachable(address, answer)
    text = f"there is no host at `{address.shown}` ({answer}): `{URL}` is the host's address, without a path"
    return GreenroomError("serve.address", text, retryable=is_known)


def _proxy(error: Exception, is_known: bool) -> GreenroomError:
    """The proxy that the environment names. Its address may hold a password, so it is not repeated."""
    if isinstance(error, InvalidProxyStatus):
        status = error.response.status_code
        text = f"the proxy refused the way to the host: HTTP {status}"
        return GreenroomError("serve.proxy", text, retryable=is_known or status not in (403, 407))
    if isinstance(error, ProxyError):
        text = f"cannot reach the host by the proxy: {one_line(str(error))}"
        return GreenroomError("serve.proxy", text, retryable=True)
    text = error.msg if isinstance(error, InvalidProxy) else str(error)
    return GreenroomError("serve.proxy", f"the proxy of the environment cannot be used: {one_line(text)}")


def _told(body: bytes | bytearray | None) -> str:
    """What the host itself says about a refusal."""
    try:
        answer: Any = json.loads(body or b"")
        return one_line(answer["error"]["message"])
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return ""
