"""Encoding of messages as JSON, and limits.

Invariant: every written line is valid JSON for every parser: no `NaN`, no lone surrogates, no line break.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import from_json

LINE_BYTES_MAX = 8 * 1024 * 1024
"""A host treats a longer line as broken framing and fails every run of the connection."""
RECEIVED_BYTES_MAX = 64 * 1024 * 1024
"""Maximum length of a line from the host."""

API_ERROR, PARSE_ERROR, INVALID_REQUEST = -32000, -32700, -32600
METHOD_NOT_FOUND, INVALID_PARAMS = -32601, -32602


class NotJson(ValueError):
    """The value cannot be encoded as JSON."""


class TooLarge(ValueError):
    """The message exceeds the host's limit."""


def encode(message: Mapping[str, Any]) -> bytes:
    """One line, without a line break."""
    try:
        line = _ENCODER.encode(message).encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        raise NotJson(str(error) or type(error).__name__) from error
    if len(line) > LINE_BYTES_MAX:
        raise TooLarge(f"{len(line)} bytes exceed the host's limit of {LINE_BYTES_MAX}")
    return line


def decode(line: bytes | bytearray | str) -> Any:
    return from_json(line)


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)
