"""The run's deadline on this side of the wire.

Invariant: only the host ends a run at its deadline; here calls are cancelled when it passes. It is paused while a
call waits for a person, as at the host.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

RECHECK_S_MIN = 0.05


class Deadline:
    """Based on the monotonic clock and the remaining milliseconds from the host."""

    def __init__(self, remaining_ms: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._at = None if remaining_ms is None else clock() + max(remaining_ms, 0) / 1000
        self._pauses = 0
        self._paused_at = 0.0

    def remaining(self) -> float | None:
        """Seconds left; `None` without a deadline."""
        if self._at is None:
            return None
        now = self._paused_at if self._pauses else self._clock()
        return max(0.0, self._at - now)

    @contextmanager
    def paused(self) -> Iterator[None]:
        if self._pauses == 0:
            self._paused_at = self._clock()
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1
            if self._pauses == 0 and self._at is not None:
                self._at += self._clock() - self._paused_at

    def watch(self, passed: Callable[[], None]) -> Watch:
        """Calls back when the deadline passes, unless the watch is cancelled."""
        return Watch(self, passed)


class Watch:
    def __init__(self, deadline: Deadline, passed: Callable[[], None]) -> None:
        self._deadline, self._passed = deadline, passed
        self._timer: asyncio.TimerHandle | None = None
        self._arm()

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _arm(self) -> None:
        left = self._deadline.remaining()
        if left is not None:
            # A pause moves the deadline, so the timer checks it again when it fires.
            self._timer = asyncio.get_running_loop().call_later(max(left, RECHECK_S_MIN), self._ring)

    def _ring(self) -> None:
        if self._deadline.remaining() == 0.0 and not self._deadline._pauses:
            self._passed()
        else:
            self._arm()
