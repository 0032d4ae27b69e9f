"""The MCP gateway with the Python SDK, unmodified. Arguments: address of the gateway, run token."""

import asyncio
import json
import sys

from mcp import Client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client


async def main():
    gateway, token = sys.argv[1:3]
    headers = {"authorization": f"Bearer {token}"}
    async with create_mcp_http_client(headers=headers) as http:
        async with Client(streamable_http_client(gateway, http_client=http)) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert {"project_cli", "state_get", "artifact_create"} <= set(names), names
            made = await client.call_tool("artifact_create", {"name": "a.txt", "text": "héllo"})
            artifact = json.loads(made.content[0].text)
            read = await client.call_tool("artifact_read", {"artifact_id": artifact["artifact_id"]})
            assert json.loads(read.content[0].text)["text"] == "héllo", read
            refused = await client.call_tool("artifact_read", {"artifact_id": "art_of_others"})
            assert refused.is_error and json.loads(refused.content[0].text)["code"] == "not_found", refused
            resource = await client.read_resource("skill://booking/SKILL.md")
            assert "How to book" in resource.contents[0].text
    print("client of Python: ok")


asyncio.run(main())
