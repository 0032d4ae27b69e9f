"""Says what it was told, on the native wire."""

from greenroom_sdk import Plugin, delta, message

plugin = Plugin("bench", "python")


@plugin.runner("default")
async def echo(ctx):
    yield delta(ctx.text)
    yield message(ctx.text)


plugin.serve()
