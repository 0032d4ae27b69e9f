"""Echo: repeats the message word by word. The smallest runner."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

from greenroom_sdk import Plugin, Result, RunCtx, delta, message

plugin = Plugin("examples", "echo")


@plugin.runner("default", label={"en_US": "Echo", "zh_Hans": "回声"})
async def echo(ctx: RunCtx) -> AsyncIterator[Result]:
    answer = f"You said: {ctx.text}"
    for piece in re.findall(r"\S+\s*", answer):
        yield delta(piece)
    yield message(answer)


if __name__ == "__main__":
    plugin.serve()
