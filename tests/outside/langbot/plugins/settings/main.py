"""Keeps the settings that it was initialized with."""

from langbot_plugin.api.definition.plugin import BasePlugin


class Plugin(BasePlugin):
    async def initialize(self) -> None:
        self.at_start = dict(self.get_config())
