"""An agent loop: calls its model, executes the tool calls, calls the model again."""

import json

from langbot_plugin.api.definition.components.runner.runner import Runner
from langbot_plugin.api.entities.builtin.provider.message import Message, MessageChunk
from langbot_plugin.api.entities.builtin.resource.tool import LLMTool
from langbot_plugin.api.entities.builtin.runner import RunnerContext, RunnerResult


async def nothing(**_):
    return None


class Loop(Runner):
    async def run(self, ctx: RunnerContext):
        model = ctx.resources.models[0].model_id
        tools = []
        for tool in ctx.resources.tools:
            detail = await ctx.api.get_tool_detail(tool.tool_name)
            tools.append(LLMTool(name=detail["name"], human_desc="", description=detail["description"] or "",
                                 parameters=detail["parameters"], func=nothing))
        messages = [Message(role="user", content=ctx.input.to_text())]
        counted = await ctx.api.count_tokens(model, messages, funcs=tools)
        await ctx.log(f"{counted} tokens" if counted > 0 else "no tokens")
        if ctx.input.to_text() == "once":
            told = await ctx.api.invoke_llm_with_usage(model, messages)
            message = Message(role="assistant", content=told.message.content)
            yield RunnerResult.run_completed(ctx.run_id, message, usage=told.usage)
            return
        for _ in range(4):
            text, calls = "", []
            async for chunk in ctx.api.invoke_llm_stream(model, messages, funcs=tools):
                calls.extend(chunk.tool_calls or [])
                if isinstance(chunk.content, str) and chunk.content:
                    text += chunk.content
                    piece = MessageChunk(role="assistant", content=chunk.content)
                    yield RunnerResult.message_delta(ctx.run_id, piece)
            messages.append(Message(role="assistant", content=text, tool_calls=calls or None))
            if not calls:
                break
            for call in calls:
                result = await ctx.call_tool(call.function.name, json.loads(call.function.arguments))
                messages.append(Message(role="tool", content=json.dumps(result), tool_call_id=call.id))
        yield RunnerResult.message_completed(ctx.run_id, Message(role="assistant", content=text))
        yield RunnerResult.run_completed(ctx.run_id)
