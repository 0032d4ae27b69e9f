"""A command with a subcommand, a reply by a call, a picture and a failure."""

from typing import AsyncGenerator

from langbot_plugin.api.definition.components.command.command import Command
from langbot_plugin.api.entities.builtin.command.context import CommandReturn, ExecuteContext
from langbot_plugin.api.entities.builtin.platform.message import MessageChain, Plain


class Weather(Command):
    async def initialize(self):
        @self.subcommand(name="", help="Overview", usage="weather")
        async def overview(self, context: ExecuteContext) -> AsyncGenerator[CommandReturn, None]:
            yield CommandReturn(text="fair everywhere")

        @self.subcommand(name="in", help="In a city", usage="weather in CITY")
        async def city(self, context: ExecuteContext) -> AsyncGenerator[CommandReturn, None]:
            await context.reply(MessageChain([Plain(text="looking it up")]))
            yield CommandReturn(text=f"sunny in {' '.join(context.crt_params)} for {context.session.launcher_id}")
            yield CommandReturn(text="see", image_url="https://example.com/sun.png")

        @self.subcommand(name="storm", help="Fails", usage="weather storm")
        async def storm(self, context: ExecuteContext) -> AsyncGenerator[CommandReturn, None]:
            raise ValueError("no forecast")
            yield
