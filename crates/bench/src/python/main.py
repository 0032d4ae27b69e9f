"""The plugin of the measurement, which has nothing to do by itself."""

from langbot_plugin.api.definition.plugin import BasePlugin


class Bench(BasePlugin):
    async def initialize(self):
        pass
