"""Reserves stdout for the wire.

Invariant: nothing that a runner, its libraries or its child processes print reaches the wire: it goes to stderr, with
one warning that names the caller.
"""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Iterable
from typing import BinaryIO

from greenroom_sdk.wire.log import say


def take_stdio() -> tuple[int, int]:
    """Descriptors for the wire; stdin then reads nothing and stdout goes to stderr."""
    global _held
    reading = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    writing = hold_stdout() if _held is None else _held
    _held = None
    return reading, writing


def hold_stdout() -> int:
    """Redirects stdout before the runner is imported, so that prints during the import are caught too."""
    global _held
    _held = os.dup(1)
    os.dup2(2, 1)
    # Buffered output goes to stderr as well.
    sys.stdout.flush()
    sys.stdout = Redirected()
    return _held


_held: int | None = None


class Redirected(io.TextIOBase):
    """`sys.stdout` of a runner."""

    def __init__(self) -> None:
        self._has_warned = False

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    @property
    def buffer(self) -> BinaryIO:
        self._warn()
        return sys.stderr.buffer

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return sys.stderr.fileno()

    def write(self, text: str) -> int:
        self._warn()
        return sys.stderr.write(text)

    def writelines(self, lines: Iterable[str]) -> None:  # type: ignore[override]
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        sys.stderr.flush()

    def _warn(self) -> None:
        if not self._has_warned:
            self._has_warned = True
            say(f"{_caller()} printed to stdout, which carries the wire; it goes to stderr. Use `logging` instead")


def _caller() -> str:
    """The caller that printed: the nearest frame outside of this file."""
    for frame in reversed(traceback.extract_stack()[:-1]):
        if frame.filename != __file__:
            return f"`{frame.name}` ({frame.filename}:{frame.lineno})"
    return "the runner"
