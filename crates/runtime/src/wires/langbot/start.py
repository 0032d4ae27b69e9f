"""Starts a plugin with the SDK of its own environment, neither of which is changed on disk.

It changes five behaviours of the SDK:
- The SDK does not answer when a runner raises something that is no `Exception`, and `SystemExit` ends every run of the
  process. Here both fail the one run, or are logged if a task or callback of the run raised them.
- The SDK reports only the text of an exception. Here the traceback goes to the log.
- The SDK uses standard input and output, which the plugin can use as well. Here it gets descriptors of its own, and
  what the plugin prints goes to the log.
- The SDK passes every message through threads, twice each way. Here it reads and writes them in place.
- The SDK leaves out a component whose description cannot be read. Here the plugin does not start.
"""

import asyncio
import contextvars
import inspect
import logging
import os
import runpy
import sys
import types

# The run of this task or callback.
RUN = contextvars.ContextVar("RUN", default=None)


def is_cancelled(error):
    """Whether the run was cancelled. Python before 3.11 cannot tell, so it is assumed there."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and getattr(task, "cancelling", lambda: True)() > 0


def ordinary(error):
    """The exception that the SDK reports; the log gets the whole."""
    if is_cancelled(error):
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
        return RuntimeError("the runner raised CancelledError, but its run was not cancelled")
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
    """The same function of one argument; the SDK only sees ordinary exceptions."""

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
    """Exceptions of tasks and callbacks do not end the event loop, which all runs share."""
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
    """Gives the SDK descriptors of its own: prints go to stderr, and only the SDK reads the input."""
    ends = {"stdin": os.fdopen(os.dup(0), "rb", 0), "stdout": os.fdopen(os.dup(1), "wb", 0)}
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    sys.stdout.reconfigure(line_buffering=True)
    server.sys = types.SimpleNamespace(platform=sys.platform, **ends)


# What the SDK does to a message. The interpreter does one of these at a time, in any thread.
COMPUTES = {"loads", "model_validate", "<lambda>", "encode", "join"}


def spare_threads(module):
    in_a_thread = module.run_blocking_with_backpressure

    async def here(work, *given, **named):
        if getattr(work, "__name__", "") not in COMPUTES:
            return await in_a_thread(work, *given, **named)
        # A run that only writes must not starve the others.
        await asyncio.sleep(0)
        return work(*given, **named)

    module.run_blocking_with_backpressure = here


def check_descriptions():
    """Exits if a description cannot be read: the SDK would leave its component out and only log it."""
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


def guard_agent_runs(kind):
    """The older SDK calls `run` itself: each instance gets a guarded one when it is bound."""
    bind = kind.bind_runtime

    def guarded_bind(self, *given, **named):
        if "run" not in vars(self):
            run = self.run

            def marked(ctx):
                RUN.set(getattr(ctx, "run_id", "") or "unknown")
                return run(ctx)

            self.run = guarded(marked)
        return bind(self, *given, **named)

    kind.bind_runtime = guarded_bind


def guard_components():
    """The runners of the SDK's dialect."""
    try:
        from langbot_plugin.api.definition.components.runner.runner import Runner
    except ImportError:
        from langbot_plugin.api.definition.components.agent_runner.runner import AgentRunner

        guard_agent_runs(AgentRunner)
    else:
        guard_runs(Runner)


def guard_wire():
    from langbot_plugin.runtime.io import handler
    from langbot_plugin.runtime.io.connections import stdio
    from langbot_plugin.runtime.io.controllers.stdio import server

    guard_the_loop(asyncio.Handle)
    guard_actions(handler.Handler)
    if server.sys is sys:
        keep_the_wire(server)
    spare_threads(handler)
    spare_threads(stdio)


for guard in (guard_components, guard_wire, check_descriptions):
    try:
        guard()
    except (ImportError, AttributeError) as error:
        # An unknown SDK runs without this guard.
        logging.getLogger("greenroom").warning("this SDK runs without %s: %s", guard.__name__, error)

runpy.run_module("langbot_plugin.cli", run_name="__main__", alter_sys=True)
