"""Cuts a stream of bytes into lines.

Invariant: a line is given once and whole, however its bytes came; one that is too long is an error and not memory.
"""

from __future__ import annotations

from collections.abc import Iterator


class Lines:
    def __init__(self, line_bytes_max: int) -> None:
        self._most = line_bytes_max
        self._pieces: list[bytes] = []
        self._bytes = 0

    def of(self, data: bytes) -> Iterator[bytes]:
        """The lines that end in `data`; what comes after the last of them is kept."""
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
                raise OverflowError(f"a line of the host has more than {self._most} bytes")
