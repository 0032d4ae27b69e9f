from langbot_plugin.api.definition.components.command.command import Command
from langbot_plugin.api.entities.builtin.command.context import CommandReturn


class Weather(Command):
    async def initialize(self):
        @self.subcommand(name="in", help="In a city", usage="weather in CITY")
        async def city(self, context):
            yield CommandReturn(text=f"sunny in {' '.join(context.crt_params)}")
