"""The plugin class, which is empty."""

from langbot_plugin.api.definition.plugin import BasePlugin


class Plugin(BasePlugin):
    async def initialize(self) -> None:
        pass
