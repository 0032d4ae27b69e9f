"""OpenAI Agents SDK agent: the SDK runs the loop, the host provides model and tools, so it needs no key.

Needs `openai-agents`.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, FunctionTool, Model, ModelResponse, RunConfig, Runner, Usage
from agents.items import TResponseInputItem, TResponseOutputItem, TResponseStreamEvent
from agents.tool_context import ToolContext
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from greenroom_sdk import Api, Plugin, Result, RunCtx, RunFailure, message, tool_completed, tool_started
from greenroom_sdk.protocol import ToolResource

plugin = Plugin("examples", "openai-agents-agent")


class HostModel(Model):
    """A model of the host. Its text is streamed to the user while the SDK waits for the complete answer."""

    def __init__(self, ctx: RunCtx, api: Api, model_id: str) -> None:
        self._ctx, self._api, self._model_id = ctx, api, model_id

    async def get_response(
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],
        *args: Any,
        **kwargs: Any,
    ) -> ModelResponse:
        messages = [{"role": "system", "content": system_instructions or ""}, *told(input)]
        stream = self._api.models.stream(self._model_id, messages, tools=self._ctx.resources.tools)
        async for item in stream:
            if item.type == "text_delta":
                await self._ctx.delta(item.text)
        assert stream.response is not None
        output: list[TResponseOutputItem] = []
        if stream.response.text:
            part = ResponseOutputText(text=stream.response.text, type="output_text", annotations=[])
            output.append(
                ResponseOutputMessage(
                    id="message", role="assistant", status="completed", type="message", content=[part]
                )
            )
        for call in stream.response.tool_calls:
            args_text = json.dumps(call.get("args"))
            output.append(
                ResponseFunctionToolCall(
                    type="function_call", call_id=call["id"], name=call["name"], arguments=args_text
                )
            )
        used = stream.response.usage or {}
        tokens_in, tokens_out = used.get("input_tokens", 0), used.get("output_tokens", 0)
        usage = Usage(1, tokens_in, output_tokens=tokens_out, total_tokens=tokens_in + tokens_out)
        return ModelResponse(output=output, usage=usage, response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[TResponseStreamEvent]:
        raise NotImplementedError("this agent streams by itself")


def host_tool(ctx: RunCtx, api: Api, tool: ToolResource) -> FunctionTool:
    """A tool executed by the host."""

    async def invoke(context: ToolContext[Any], arguments: str) -> str:
        call_id, parameters = context.tool_call_id, json.loads(arguments or "{}")
        await ctx.emit(tool_started(call_id, tool.tool_name, parameters))
        answer = await api.tools.call(tool.tool_name, parameters, tool_call_id=call_id)
        await ctx.emit(tool_completed(call_id, tool.tool_name, answer.result, answer.error))
        return answer.text

    schema = {"properties": {}, **tool.parameters, "type": "object"}
    return FunctionTool(tool.tool_name, tool.description or "", schema, invoke, strict_json_schema=False)


def told(items: str | list[TResponseInputItem]) -> list[dict[str, Any]]:
    """The SDK's items as messages to a model."""
    if isinstance(items, str):
        return [{"role": "user", "content": items}]
    messages: list[dict[str, Any]] = []
    for item in items:
        one: dict[str, Any] = dict(item)
        if one.get("type") == "function_call":
            call = {"id": one["call_id"], "name": one["name"], "args": json.loads(one["arguments"])}
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        elif one.get("type") == "function_call_output":
            messages.append({"role": "tool", "tool_call_id": one["call_id"], "content": str(one["output"])})
        elif "content" in one:
            content = one["content"]
            text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
            messages.append({"role": one.get("role", "user"), "content": text})
    return messages


@plugin.runner(
    "default",
    label="OpenAI Agents SDK agent",
    permissions={"models": ["stream"], "tools": ["detail", "call"]},
)
async def run(ctx: RunCtx, api: Api) -> AsyncIterator[Result]:
    if not ctx.resources.models:
        raise RunFailure("agent.no_model", "the agent's grant has no model")
    model = HostModel(ctx, api, str(ctx.config.get("model") or ctx.resources.models[0].model_id))
    agent: Agent[None] = Agent(
        name="assistant",
        instructions=str(ctx.config.get("prompt") or "You are a helpful assistant."),
        model=model,
        tools=[host_tool(ctx, api, tool) for tool in ctx.resources.tools],
    )
    done = await Runner.run(agent, ctx.text, run_config=RunConfig(tracing_disabled=True))
    usage = done.context_wrapper.usage
    ctx.set_usage({"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens})
    yield message(str(done.final_output))


if __name__ == "__main__":
    plugin.serve()
