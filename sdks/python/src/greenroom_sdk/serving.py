"""Serves a plugin until the host shuts it down.

Invariant: returns only when the connection has ended; errors go to stderr, and then the process exits with 1.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from typing import TYPE_CHECKING

from greenroom_sdk.errors import GreenroomError
from greenroom_sdk.wire import stdio, websocket
from greenroom_sdk.wire.address import TOKEN, URL
from greenroom_sdk.wire.guard import take_stdio
from greenroom_sdk.wire.leaks import watch_tasks
from greenroom_sdk.wire.log import say
from greenroom_sdk.wire.watchdog import Watchdog

if TYPE_CHECKING:
    from greenroom_sdk.plugin import Plugin

STRAGGLERS_S = 1.0
"""How long leaked tasks of runs may take to end with the process."""


def serve(plugin: Plugin) -> None:
    """Serves over the transport set by the environment, then ends the process."""
    try:
        asyncio.run(serve_async(plugin))
    except GreenroomError as error:
        say(f"error: {error.message}")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


async def serve_async(plugin: Plugin) -> None:
    """Serves on a running event loop."""
    checked = plugin.checked()
    url, token = os.environ.get(URL), os.environ.get(TOKEN)
    if bool(url) != bool(token):
        present, missing = (URL, TOKEN) if url else (TOKEN, URL)
        hint = "set both to connect to a host, or neither to be started by one"
        raise GreenroomError("serve.environment", f"`{present}` is set but `{missing}` is not: {hint}")
    loop = asyncio.get_running_loop()
    watch_tasks(loop)
    watchdog = Watchdog(loop)
    try:
        if url and token:
            await websocket.serve(checked, url, token, watchdog.busy)
        else:
            await stdio.serve(checked, *take_stdio(), watchdog.busy)
    finally:
        watchdog.stop()
        await _end_stragglers()


async def _end_stragglers() -> None:
    """Cancels leaked tasks; a busy thread must not keep the process alive."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=STRAGGLERS_S)
    is_stuck = any(not task.done() for task in tasks)
    threads = [one for one in threading.enumerate() if one is not threading.main_thread() and not one.daemon]
    # Idle threads of the executor end by themselves; busy ones would be joined forever.
    if is_stuck or any(_is_working(thread) for thread in threads):
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()
        os._exit(0)


def _is_working(thread: threading.Thread) -> bool:
    """Whether a thread of the executor is running a function."""
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None:
        if frame.f_code.co_name == "run" and frame.f_code.co_filename.endswith("concurrent/futures/thread.py"):
            return True
        frame = frame.f_back
    return not thread.name.startswith("asyncio")
