"""Starts a plugin with the SDK of its own environment.

The SDK answers nothing for a run that raises what is no `Exception`, and `SystemExit` ends every run of its process.
Both become failures of the one run here, before the SDK sees them; neither it nor the plugin is changed on disk.
"""

import asyncio
import inspect
import runpy


def is_asked(error):
    """Whether somebody wants the run to end: Python before 3.11 cannot tell, so it is taken for granted there."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and getattr(task, "cancelling", lambda: True)() > 0


def ordinary(error):
    """What the SDK tells the host of."""
    if isinstance(error, Exception) or is_asked(error):
        return error
    if isinstance(error, asyncio.CancelledError):
        return RuntimeError("the runner raised CancelledError, but nobody cancelled its run")
    return RuntimeError(f"the runner raised {error!r}, which is no Exception")


async def whole(execution):
    try:
        return await execution
    except BaseException as error:
        raise ordinary(error)


async def stream(execution):
    results = aiter(execution)
    try:
        while True:
            try:
                result = await anext(results)
            except StopAsyncIteration:
                return
            except BaseException as error:
                raise ordinary(error)
            yield result
    finally:
        if close := getattr(results, "aclose", None):
            await whole(close())


def guarded(run):
    def guarded_run(ctx):
        try:
            execution = run(ctx)
        except BaseException as error:
            raise ordinary(error)
        if hasattr(execution, "__aiter__"):
            return stream(execution)
        return whole(execution) if inspect.isawaitable(execution) else execution

    return guarded_run


def guard(kind):
    invoke = kind.invoke

    def guarded_invoke(self, ctx):
        if "run" not in vars(self):
            self.run = guarded(self.run)
        return invoke(self, ctx)

    kind.invoke = guarded_invoke


try:
    from langbot_plugin.api.definition.components.runner.runner import Runner

    guard(Runner)
except (ImportError, AttributeError):
    # Another SDK than the one that is known: it runs as it is.
    pass

runpy.run_module("langbot_plugin.cli", run_name="__main__", alter_sys=True)
