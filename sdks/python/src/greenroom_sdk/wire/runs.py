"""One run from its start to its terminal result.

Invariant: a run ends with exactly one terminal result and then the answer to its `run_agent`, whatever its code
does: raise, return, be cancelled, ignore cancellation, call `sys.exit`, or continue after its end.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from greenroom_sdk import results
from greenroom_sdk.context import RunCtx
from greenroom_sdk.errors import GreenroomError, RunFailure, reasons
from greenroom_sdk.results import Result
from greenroom_sdk.wire.leaks import STARTED, Tasks, warn_about_leaks
from greenroom_sdk.wire.log import describe, say, say_exception, shown


class Run:
    """An active run."""

    def __init__(
        self, ctx: RunCtx, start: Callable[[RunCtx], Any], grace_s: float, ended: Callable[[Run], None]
    ) -> None:
        self.ctx = ctx
        self._start, self._grace_s, self._ended = start, grace_s, ended
        self._is_over = False
        self._started: Tasks = Tasks()
        self._overdue: asyncio.TimerHandle | None = None
        self._task = asyncio.get_running_loop().create_task(self._work(), name=f"run {ctx.run_id}")
        self._task.add_done_callback(self._done)

    def cancel(self) -> None:
        """Raises `CancelledError` in the runner, which then has the grace period to clean up."""
        if self.ctx._is_cancelled or self._is_over:
            return
        self.ctx._is_cancelled = self.ctx._host.is_cancelled = True
        self._task.cancel("the run was cancelled")
        self._overdue = asyncio.get_running_loop().call_later(self._grace_s, self._abandon)

    async def wait(self) -> None:
        await asyncio.wait({self._task})

    async def _work(self) -> None:
        STARTED.set(self._started)
        try:
            work = self._start(self.ctx)
            if inspect.isasyncgen(work):
                await self._send_all(work)
            else:
                await work
        except SystemExit as error:
            raise RunFailure("runner.error", f"the runner called `sys.exit({shown(error.code)})`") from error
        except KeyboardInterrupt as error:
            if sys.version_info < (3, 11):
                # It may be the user's Ctrl-C, which newer versions raise elsewhere.
                raise
            raise RunFailure("runner.error", "the runner raised KeyboardInterrupt") from error

    async def _send_all(self, work: Any) -> None:
        """Sends the results of an async generator, and always closes it."""
        try:
            async for result in work:
                if self.ctx._is_ended:
                    say(f"run {self.ctx.run_id}: the runner yielded after the end of the run; it was closed")
                    return
                await self.ctx.emit(result)
        finally:
            await self._close(work)

    async def _close(self, work: Any) -> None:
        try:
            await work.aclose()
        except Exception as error:
            say_exception(f"run {self.ctx.run_id}: the runner failed while it was closed", error)

    def _done(self, task: asyncio.Task[None]) -> None:
        error: BaseException | None = None
        try:
            error = task.exception()
        except asyncio.CancelledError as cancelled:
            error = cancelled
        self._log_failure(error)
        self._finish(self._terminal(error))

    def _log_failure(self, error: BaseException | None) -> None:
        """Logs the traceback, which the terminal result does not carry."""
        is_cancelled = isinstance(error, asyncio.CancelledError) and self.ctx._is_cancelled
        is_reported = (is_cancelled or isinstance(error, RunFailure)) and not (error and error.__cause__)
        if error is None or is_reported:
            return
        after = " after its end" if self.ctx._is_ended or self._is_over else ""
        say_exception(f"run {self.ctx.run_id} failed{after}", error)

    def _terminal(self, error: BaseException | None) -> Result:
        if self.ctx._is_cancelled:
            return results.failed("cancelled", "the run was cancelled")
        if error is None:
            return results.completed(usage=self.ctx._usage)
        if isinstance(error, asyncio.CancelledError):
            return results.failed("runner.error", "the runner cancelled itself")
        return _failed(error)

    def _abandon(self) -> None:
        """Ends the run after the grace period; further output of its code is dropped."""
        if not self._is_over:
            say(f"run {self.ctx.run_id} did not end {self._grace_s:g} s after it was cancelled; it was abandoned")
            self._finish(results.failed("cancelled", "the run was cancelled"))

    def _finish(self, terminal: Result) -> None:
        if self._is_over:
            return
        self._is_over = True
        if self._overdue is not None:
            self._overdue.cancel()
        try:
            self.ctx._end(terminal)
        except RunFailure as error:
            self.ctx._is_ended = False
            self.ctx._end(results.failed("runner.error", f"the terminal result could not be sent: {error.message}"))
        self._ended(self)
        warn_about_leaks(self.ctx.run_id, self._started)


def _failed(error: BaseException) -> Result:
    """`run.failed` with the code of the error, if it has one."""
    if isinstance(error, ValidationError):
        return _safely("runner.error", f"{error.title} is not valid: {reasons(error)}", False)
    if isinstance(error, GreenroomError):
        return _safely(error.code, error.message or type(error).__name__, error.retryable)
    return _safely("runner.error", describe(error), False)


def _safely(code: str, message: str, retryable: bool) -> Result:
    """A terminal result that the host accepts, even if the code or the message is invalid."""
    text = (message if isinstance(message, str) else shown(message)).encode("utf-8", "replace").decode("utf-8")[:65536]
    try:
        return results.failed(code, text, retryable=retryable)
    except ValidationError:
        return results.failed("runner.error", f"{text} (with the invalid code {shown(code)})", retryable=False)
