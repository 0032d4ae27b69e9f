"""JSON text of messages, and its limits.

Invariant: a line that is written can be read by every JSON reader: no `NaN`, no half characters, no line end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import from_json

LINE_BYTES_MAX = 8 * 1024 * 1024
"""A host takes a longer line for a broken wire and ends every run of the connection."""
RECEIVED_BYTES_MAX = 64 * 1024 * 1024
"""Longest line a host may send."""

API_ERROR, PARSE_ERROR, INVALID_REQUEST = -32000, -32700, -32600
METHOD_NOT_FOUND, INVALID_PARAMS = -32601, -32602


class NotJson(ValueError):
    """A value that has no JSON text."""


class TooLarge(ValueError):
    """A message that no host takes."""


def encode(message: Mapping[str, Any]) -> bytes:
    """One line, without its end."""
    try:
        line = _ENCODER.encode(message).encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        raise NotJson(str(error) or type(error).__name__) from error
    if len(line) > LINE_BYTES_MAX:
        raise TooLarge(f"{len(line)} bytes are more than the {LINE_BYTES_MAX} a host takes")
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
