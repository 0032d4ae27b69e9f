"""Detects tasks leaked by a run.

Invariant: it only warns: a library may keep a task on purpose.
"""

from __future__ import annotations

import asyncio
import weakref
from contextvars import ContextVar
from typing import Any

from greenroom_sdk.wire.log import say

Tasks = weakref.WeakSet[Any]

STARTED: ContextVar[Tasks | None] = ContextVar("greenroom_started_tasks", default=None)
"""The tasks started by the current run, directly or through others."""

NAMES_MAX = 5


def watch_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Makes the loop record each task with the run that started it."""
    loop.set_task_factory(_recording_factory)


def warn_about_leaks(run_id: str, started: Tasks) -> None:
    left = [task for task in started if not task.done()]
    if left:
        names = ", ".join(sorted(_name(task) for task in left)[:NAMES_MAX])
        say(f"run {run_id} ended with {len(left)} tasks still running: {names}; await or cancel them")


def _recording_factory(loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> asyncio.Task[Any]:
    task: asyncio.Task[Any] = asyncio.Task(coro, loop=loop, **options)
    started = STARTED.get()
    if started is not None:
        started.add(task)
    return task


def _name(task: asyncio.Task[Any]) -> str:
    return f"`{getattr(task.get_coro(), '__qualname__', task.get_name())}`"
