from langbot_plugin.api.definition.plugin import BasePlugin


class Guards(BasePlugin):
    async def initialize(self) -> None:
        pass
