"""The plugin itself, which has nothing to do."""

from langbot_plugin.api.definition.plugin import BasePlugin


class Plugin(BasePlugin):
    async def initialize(self) -> None:
        pass
