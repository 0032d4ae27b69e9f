"""Notices tasks that a run leaves behind.

Invariant: it only speaks: a library may have reasons of its own to keep a task.
"""

from __future__ import annotations

import asyncio
import weakref
from contextvars import ContextVar
from typing import Any

from greenroom_sdk.wire.log import say

Tasks = weakref.WeakSet[Any]

STARTED: ContextVar[Tasks | None] = ContextVar("greenroom_started_tasks", default=None)
"""The tasks that the current run has started, directly or through others."""

NAMES_TOLD = 5


def watch_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Has the loop note each task with the run that started it."""
    loop.set_task_factory(_noted)


def tell_what_is_left(run_id: str, started: Tasks) -> None:
    left = [task for task in started if not task.done()]
    if left:
        names = ", ".join(sorted(_name(task) for task in left)[:NAMES_TOLD])
        say(f"run {run_id} ended and left {len(left)} of its tasks going on: {names}; await or cancel them")


def _noted(loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> asyncio.Task[Any]:
    task: asyncio.Task[Any] = asyncio.Task(coro, loop=loop, **options)
    started = STARTED.get()
    if started is not None:
        started.add(task)
    return task


def _name(task: asyncio.Task[Any]) -> str:
    return f"`{getattr(task.get_coro(), '__qualname__', task.get_name())}`"
