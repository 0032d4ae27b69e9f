"""Starts a plugin with the SDK of its own environment, neither of which is changed on disk.

Five things are put right before the SDK sees them. It answers nothing for what raises and is no `Exception`, and
`SystemExit` ends every run of its process: both become failures of the one run, or are logged if they come from what
the run left behind. It tells the host the text of an exception alone: the traceback goes to the log. It speaks over
standard input and output, which are the plugin's too: it gets ends of its own, and what the plugin prints goes to the
log. It sends every message through threads, two times each way, among those that the plugin keeps busy: it reads and
writes them where it is. It leaves a component out whose description cannot be read: it is not started then.
"""

import asyncio
import contextvars
import inspect
import logging
import os
import runpy
import sys
import types

# The run that this is, or that has started this task or callback.
RUN = contextvars.ContextVar("RUN", default=None)


def is_asked(error):
    """Whether somebody wants the run to end: Python before 3.11 cannot tell, so it is taken for granted there."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and getattr(task, "cancelling", lambda: True)() > 0


def ordinary(error):
    """What the SDK tells the host of; the log has it whole."""
    if is_asked(error):
        return error
    run = f"run {RUN.get()}: " if RUN.get() else ""
    logging.getLogger("greenroom").error("%sthe plugin raised", run, exc_info=error)
    if isinstance(error, asyncio.TimeoutError):
        # The SDK takes it for the deadline of the run.
        return RuntimeError(f"TimeoutError: {error}" if str(error) else "TimeoutError")
    if isinstance(error, Exception):
        if not str(error):
            error.args = (type(error).__name__,)
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
    results = execution
    try:
        while True:
            try:
                results = aiter(results)
                result = await anext(results)
            except StopAsyncIteration:
                return
            except BaseException as error:
                raise ordinary(error)
            yield result
    finally:
        if close := getattr(results, "aclose", None):
            await whole(close())


def guarded(work):
    """The same function of one argument, of which the SDK sees ordinary failures only."""

    def guarded_work(given):
        try:
            execution = work(given)
        except BaseException as error:
            raise ordinary(error)
        if hasattr(execution, "__aiter__"):
            return stream(execution)
        return whole(execution) if inspect.isawaitable(execution) else execution

    return guarded_work


def guard_runs(kind):
    invoke = kind.invoke

    def guarded_invoke(self, ctx):
        if "run" not in vars(self):
            run = self.run

            def marked(ctx):
                RUN.set(getattr(ctx, "run_id", "") or "unknown")
                return run(ctx)

            self.run = guarded(marked)
        return invoke(self, ctx)

    kind.invoke = guarded_invoke


def guard_the_loop(kind):
    """What tasks and callbacks of a run raise does not end the loop, which is everybody's."""
    step = kind._run

    def guarded_step(self):
        try:
            step(self)
        except (SystemExit, KeyboardInterrupt) as error:
            if not self._context.get(RUN):
                raise
            self._context.run(ordinary, error)

    kind._run = guarded_step


def guard_actions(kind):
    action = kind.action

    def guarded_action(self, name):
        register = action(self, name)
        return lambda work: register(guarded(work))

    kind.action = guarded_action


def keep_the_wire(server):
    """Gives the SDK ends of its own: what is printed goes where errors go, and nobody else reads the input."""
    ends = {"stdin": os.fdopen(os.dup(0), "rb", 0), "stdout": os.fdopen(os.dup(1), "wb", 0)}
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    sys.stdout.reconfigure(line_buffering=True)
    server.sys = types.SimpleNamespace(platform=sys.platform, **ends)


# What the SDK does to a message: the interpreter does one of these at a time, in whatever thread.
COMPUTES = {"loads", "model_validate", "<lambda>", "encode", "join"}


def spare_threads(module):
    in_a_thread = module.run_blocking_with_backpressure

    async def here(work, *given, **named):
        if getattr(work, "__name__", "") not in COMPUTES:
            return await in_a_thread(work, *given, **named)
        # A run that only writes lets others have their turn.
        await asyncio.sleep(0)
        return work(*given, **named)

    module.run_blocking_with_backpressure = here


def check_descriptions():
    """Ends where a description cannot be read: the SDK would leave its component out and say so in the log alone."""
    import yaml

    found = ["manifest.yaml"]
    for folder, _, names in os.walk("components"):
        found.extend(os.path.join(folder, name) for name in names if name.endswith((".yaml", ".yml")))
    for path in sorted(found):
        try:
            with open(path, encoding="utf-8") as file:
                yaml.safe_load(file)
        except OSError:
            pass  # The SDK says so.
        except (yaml.YAMLError, ValueError) as error:
            sys.exit(f"{path} cannot be read: {' '.join(str(error).split())}")


try:
    from langbot_plugin.api.definition.components.runner.runner import Runner
    from langbot_plugin.runtime.io import handler
    from langbot_plugin.runtime.io.connections import stdio
    from langbot_plugin.runtime.io.controllers.stdio import server

    guard_runs(Runner)
    guard_the_loop(asyncio.Handle)
    guard_actions(handler.Handler)
    if server.sys is sys:
        keep_the_wire(server)
    spare_threads(handler)
    spare_threads(stdio)
    check_descriptions()
except (ImportError, AttributeError) as error:
    # Another SDK than the one that is known: it runs as it is.
    logging.getLogger("greenroom").warning("this SDK is started as it is: %s", error)

runpy.run_module("langbot_plugin.cli", run_name="__main__", alter_sys=True)
