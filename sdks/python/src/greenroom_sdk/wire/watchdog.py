"""Watches the event loop from a thread while runs are active, and reports the function that blocks it.

Invariant: it costs nothing while no run is active; it only warns.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
import traceback
from types import FrameType

from greenroom_sdk.wire.log import say

BLOCKED_S = 1.0
"""A loop that does not respond for this long is blocked."""


class Watchdog:
    def __init__(self, loop: asyncio.AbstractEventLoop, blocked_s: float = BLOCKED_S) -> None:
        self._loop, self._blocked_s = loop, blocked_s
        self._loop_thread = threading.get_ident()
        self._has_runs = threading.Event()
        self._is_over = False
        self._thread: threading.Thread | None = None

    def busy(self, runs: int) -> None:
        """Sets the number of active runs."""
        if runs == 0:
            self._has_runs.clear()
            return
        self._has_runs.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="greenroom-watchdog", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        self._is_over = True
        self._has_runs.set()

    def _watch(self) -> None:
        while self._has_runs.wait() and not self._is_over:
            answered = threading.Event()
            asked_at = time.monotonic()
            try:
                self._loop.call_soon_threadsafe(answered.set)
            except RuntimeError:
                return  # The loop is closed.
            if not answered.wait(self._blocked_s):
                self._warn()
                answered.wait()
                say(f"the event loop continues after {time.monotonic() - asked_at:.1f} s")
            time.sleep(self._blocked_s / 2)

    def _warn(self) -> None:
        frame = sys._current_frames().get(self._loop_thread)
        task = self._task_name()
        location = _blocking_function(frame)
        say(
            f"{task} blocks the event loop for more than {self._blocked_s:g} s in {location}: all other runs"
            " of this process wait. Use `await asyncio.to_thread(...)` for work that blocks"
        )

    def _task_name(self) -> str:
        try:
            task = asyncio.current_task(self._loop)
        except RuntimeError:
            task = None
        return "something" if task is None else task.get_name()


def _blocking_function(frame: FrameType | None) -> str:
    """The innermost function of the runner, and the library call inside it."""
    if frame is None:
        return "an unknown function"
    frames = traceback.extract_stack(frame)
    innermost = frames[-1]
    own = next((one for one in reversed(frames) if _is_own(one.filename)), innermost)
    text = f"`{own.name}` ({own.filename}:{own.lineno}: {own.line})"
    return text if own is innermost else f"{text}, inside `{innermost.name}` ({innermost.filename}:{innermost.lineno})"


def _is_own(filename: str) -> bool:
    library = ("site-packages", "dist-packages", "/lib/python", "\\lib\\", "greenroom_sdk/", "<frozen")
    return not any(part in filename for part in library)
