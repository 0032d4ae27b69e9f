"""Splits a stream of bytes into lines.

Invariant: a line is yielded once and complete, however its bytes are split; a line over the limit is an error.
"""

from __future__ import annotations

from collections.abc import Iterator


class Lines:
    def __init__(self, line_bytes_max: int) -> None:
        self._most = line_bytes_max
        self._pieces: list[bytes] = []
        self._bytes = 0

    def of(self, data: bytes) -> Iterator[bytes]:
        """The lines completed by `data`; the rest is buffered."""
        *ended, rest = data.split(b"\n")
        for piece in ended:
            line = b"".join([*self._pieces, piece]) if self._pieces else piece
            self._pieces.clear()
            self._bytes = 0
            if line.strip():
                yield line
        if rest:
            self._pieces.append(rest)
            self._bytes += len(rest)
            if self._bytes > self._most:
                raise OverflowError(f"a line from the host exceeds {self._most} bytes")
