from langbot_plugin.api.definition.plugin import BasePlugin


class Parts(BasePlugin):
    async def initialize(self) -> None:
        pass
