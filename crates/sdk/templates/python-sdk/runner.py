"""my-runner: a Greenroom runner. Change `run`; log with `logging`, as stdout carries the wire."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

from greenroom_sdk import Plugin, Result, RunCtx, delta, message

plugin = Plugin("local", "my-runner", "0.1.0")


@plugin.runner("default", label="my-runner")
async def run(ctx: RunCtx) -> AsyncIterator[Result]:
    """The runner's own work: it is told about one event and yields results."""
    answer = f"You said: {ctx.text}"
    for piece in re.findall(r"\S+\s*", answer):
        yield delta(piece)
    yield message(answer)


if __name__ == "__main__":
    plugin.serve()
