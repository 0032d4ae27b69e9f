"""Answers events with every kind of call, and returns no message."""

from langbot_plugin.api.definition.components.runner.runner import Runner
from langbot_plugin.api.entities.builtin.platform.message import Image, MessageChain, Plain
from langbot_plugin.api.entities.builtin.runner import RunnerContext, RunnerResult


class Greeter(Runner):
    async def run(self, ctx: RunnerContext):
        way = ctx.input.to_text()
        if way == "text":
            await ctx.reply("welcome")
        elif way == "quote":
            await ctx.reply("welcome", quote_origin=True)
        elif way == "chain":
            picture = Image(url="https://example.com/a.png")
            await ctx.api.reply_message(MessageChain([Plain(text="look: "), picture]))
        elif way == "stream":
            async with ctx.reply_stream() as stream:
                for text in ["wel", "welcome", "welcome!"]:
                    await stream.update(text)
        elif way == "aborted":
            try:
                async with ctx.reply_stream() as stream:
                    await stream.update("never")
                    raise ValueError("thought better of it")
            except ValueError:
                await ctx.reply("rather this")
        elif way == "path":
            try:
                await ctx.api.reply_message(MessageChain([Image(path="/etc/hostname")]))
            except Exception as error:
                await ctx.reply(f"{error.error.code}: {error}")
        else:
            await ctx.reply(f"{ctx.event.event_type}")
        yield RunnerResult.run_completed(ctx.run_id)
