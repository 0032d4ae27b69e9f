"""AgentScope agent: AgentScope runs the loop, the host provides model and tools.

Needs `agentscope` 2 and Python 3.11.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from agentscope.agent import Agent, InjectionConfig
from agentscope.credential import CredentialBase
from agentscope.event import ModelCallStartEvent, TextBlockDeltaEvent
from agentscope.formatter import FormatterBase
from agentscope.message import Msg, TextBlock, ToolCallBlock, ToolResultBlock, ToolResultState, UserMsg
from agentscope.model import ChatModelBase, ChatResponse, ChatUsage
from agentscope.permission import PermissionBehavior, PermissionDecision
from agentscope.tool import ToolBase, ToolChoice, ToolChunk, Toolkit

from greenroom_sdk import Api, Plugin, Result, RunCtx, RunFailure, delta, message
from greenroom_sdk.protocol import ToolResource

plugin = Plugin("examples", "agentscope-agent")


class HostFormatter(FormatterBase):
    """AgentScope messages as messages for a model of the host; tool results become separate messages."""

    async def format(self, *args: Any, **kwargs: Any) -> list[dict[str, Any]]:
        messages: list[Msg] = args[0]
        return [part for one in messages for part in told(one)]


class HostModel(ChatModelBase):
    """A model of the host; needs no key."""

    formatter = HostFormatter()

    def __init__(self, api: Api, model_id: str) -> None:
        super().__init__(CredentialBase(), model_id, self.Parameters(), stream=True, max_retries=0)
        self._api = api

    async def _call_api(
        self,
        model_name: str,
        messages: list[Msg],
        tools: list[dict[str, Any]] | None = None,
        tool_choice: ToolChoice | None = None,
        **kwargs: Any,
    ) -> AsyncGenerator[ChatResponse, None]:
        return self._answer(await self.formatter.format(messages), tools)

    async def _answer(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None
    ) -> AsyncGenerator[ChatResponse, None]:
        stream = self._api.models.stream(self.model, messages, tools=[described(one) for one in tools or []])
        text = TextBlock(text="")
        async for item in stream:
            if item.type == "text_delta":
                yield ChatResponse(content=[TextBlock(text=item.text, id=text.id)], is_last=False)
            elif item.type == "tool_call_end":
                call = ToolCallBlock(id=item.id, name=item.name, input=json.dumps(item.args))
                yield ChatResponse(content=[call], is_last=False)
        used = stream.response.usage if stream.response is not None else None
        if used:
            count = ChatUsage(used.get("input_tokens", 0), used.get("output_tokens", 0), time=0.0)
            yield ChatResponse(content=[], is_last=False, usage=count)


class HostTool(ToolBase):
    """A tool executed by the host, with its checks and audit."""

    is_concurrency_safe = True
    is_read_only = False

    def __init__(self, api: Api, tool: ToolResource) -> None:
        super().__init__()
        self.name, self.description = tool.tool_name, tool.description or ""
        self.input_schema = {"properties": {}, **tool.parameters, "type": "object"}
        self._api = api

    async def check_permissions(self, *args: Any, **kwargs: Any) -> PermissionDecision:
        return PermissionDecision(behavior=PermissionBehavior.ALLOW, message="the host decides")

    async def call(self, **kwargs: Any) -> ToolChunk:
        answer = await self._api.tools.call(self.name, kwargs)
        chunk = ToolChunk(content=[TextBlock(text=answer.text)], state=ToolResultState.SUCCESS)
        if answer.error is not None:
            chunk.state = ToolResultState.ERROR
        return chunk


def told(one: Msg) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for block in one.content:
        if isinstance(block, TextBlock):
            messages.append({"role": one.role, "content": block.text})
        elif isinstance(block, ToolCallBlock):
            call = {"id": block.id, "name": block.name, "args": json.loads(block.input or "{}")}
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        elif isinstance(block, ToolResultBlock):
            parts = [TextBlock(text=block.output)] if isinstance(block.output, str) else block.output
            text = "".join(part.text for part in parts if isinstance(part, TextBlock))
            messages.append({"role": "tool", "tool_call_id": block.id, "name": block.name, "content": text})
    return messages


def described(tool: dict[str, Any]) -> dict[str, Any]:
    function = tool["function"]
    return {
        "tool_name": function["name"],
        "description": function.get("description"),
        "parameters": function.get("parameters", {}),
    }


@plugin.runner(
    "default",
    label="AgentScope agent",
    permissions={"models": ["stream"], "tools": ["detail", "call"]},
)
async def run(ctx: RunCtx, api: Api) -> AsyncIterator[Result]:
    if not ctx.resources.models:
        raise RunFailure("agent.no_model", "the agent's grant has no model")
    agent = Agent(
        name="assistant",
        system_prompt=str(ctx.config.get("prompt") or "You are a helpful assistant."),
        model=HostModel(api, str(ctx.config.get("model") or ctx.resources.models[0].model_id)),
        toolkit=Toolkit(tools=[HostTool(api, tool) for tool in ctx.resources.tools]),
        injection_config=InjectionConfig(inject_runtime_state=False),
    )
    text = ""
    async for event in agent.reply_stream(UserMsg("user", ctx.text)):
        if isinstance(event, ModelCallStartEvent):
            text = ""
        elif isinstance(event, TextBlockDeltaEvent):
            text += event.delta
            yield delta(event.delta)
    yield message(text)


if __name__ == "__main__":
    plugin.serve()
