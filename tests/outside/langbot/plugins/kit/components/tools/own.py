"""Lists plugins and their components, and asks for the version, as the official commands do."""

from langbot_plugin.api.definition.components.tool.tool import Tool


class Own(Tool):
    async def call(self, params, session, query_id):
        tools = await self.plugin.list_tools()
        commands = await self.plugin.list_commands()
        plugins = await self.plugin.list_plugins_manifest()
        return {
            "tools": sorted([tool["name"], tool["description"]["en_US"], tool["spec"]["llm_prompt"]] for tool in tools),
            "commands": [command["manifest"]["metadata"]["name"] for command in commands],
            "plugins": [plugin["manifest"]["metadata"]["name"] for plugin in plugins],
            "version": bool(await self.plugin.get_langbot_version()),
        }
