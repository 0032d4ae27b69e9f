"""The host's address and the token of a remote runner, both checked before anything is sent.

Invariant: neither the token nor a password appears in a message.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit

from greenroom_sdk.errors import GreenroomError
from greenroom_sdk.wire.log import one_line

URL, TOKEN = "GREENROOM_URL", "GREENROOM_RUNNER_TOKEN"
PATH = "/v1/runners/connect"
SCHEMES = {"ws": "ws", "http": "ws", "wss": "wss", "https": "wss"}
"""`http` and `https` are read as `ws` and `wss`, so that one address works for all commands."""


class Address(NamedTuple):
    url: str
    shown: str
    """Shown form: without the path that every host has."""


def read_address(text: str) -> Address:
    if "@" in text:
        raise GreenroomError("serve.address", f"`{URL}` contains a user or a password; the token goes into `{TOKEN}`")
    example = "write `wss://HOST`, or `ws://127.0.0.1:PORT` on the host's own machine"
    # A text that is not a plain URL may be the token.
    is_quoted = "://" in text and "?" not in text and "#" not in text
    shown_text = one_line(text) if is_quoted else URL
    wrong = GreenroomError("serve.address", f"`{shown_text}` is not the address of a host: {example}")
    try:
        parts = urlsplit(text.strip())
        host, port = parts.hostname or "", parts.port
        host.encode("idna")
    except ValueError:
        raise wrong from None
    scheme = SCHEMES.get(parts.scheme)
    if scheme is None or not host or " " in host or port == 0 or parts.query or parts.fragment:
        raise wrong
    shown = f"{scheme}://{parts.netloc}"
    if parts.path in ("", "/"):
        return Address(shown + PATH, shown)
    return Address(shown + parts.path, shown + parts.path.removesuffix(PATH))


def check_token(token: str) -> None:
    if not (token.isascii() and token.isprintable()):
        text = f"`{TOKEN}` contains a line break or another invalid character; only visible ASCII is allowed"
        raise GreenroomError("serve.token", text)
