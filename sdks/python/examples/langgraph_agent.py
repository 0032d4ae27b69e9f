"""LangGraph agent: a graph of two nodes that call the host's model and tools in turn.

The graph is compiled once; each run gives it its own context, so many runs share it.
Needs `langgraph`.
"""

from __future__ import annotations

import operator
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

from greenroom_sdk import Api, Plugin, Result, RunCtx, RunFailure, message, tool_completed, tool_started

ROUNDS_MAX = 8

plugin = Plugin("examples", "langgraph-agent")


class Talk(TypedDict):
    """The state of the graph: the messages so far."""

    messages: Annotated[list[dict[str, Any]], operator.add]


@dataclass
class Host:
    """The host, as the nodes use it."""

    ctx: RunCtx
    api: Api
    model: str


async def think(state: Talk, *, runtime: Runtime[Host]) -> dict[str, Any]:
    """Calls the model and streams its text to the user."""
    host = runtime.context
    stream = host.api.models.stream(host.model, state["messages"], tools=host.ctx.resources.tools)
    async for item in stream:
        if item.type == "text_delta":
            await host.ctx.delta(item.text)
    assert stream.response is not None
    host.ctx.set_usage(stream.response.usage)
    said = {"role": "assistant", "content": stream.response.text, "tool_calls": stream.response.tool_calls}
    return {"messages": [said]}


async def act(state: Talk, *, runtime: Runtime[Host]) -> dict[str, Any]:
    """Executes the tool calls of the model through the host."""
    host, answers = runtime.context, []
    for call in state["messages"][-1]["tool_calls"]:
        call_id, name, args = call["id"], call["name"], call.get("args")
        await host.ctx.emit(tool_started(call_id, name, args))
        if args is None:
            text = f"the arguments are not JSON: {call.get('args_error')}"
            await host.ctx.emit(tool_completed(call_id, name, error=text))
        else:
            answer = await host.api.tools.call(name, args, tool_call_id=call_id)
            await host.ctx.emit(tool_completed(call_id, name, answer.result, answer.error))
            text = answer.text
        answers.append({"role": "tool", "tool_call_id": call_id, "name": name, "content": text})
    return {"messages": answers}


def decide(talk: Talk) -> str:
    return "act" if talk["messages"][-1].get("tool_calls") else END


builder = StateGraph(Talk, context_schema=Host)
builder.add_node("think", think)
builder.add_node("act", act)
builder.add_edge(START, "think")
builder.add_conditional_edges("think", decide, ["act", END])
builder.add_edge("act", "think")
graph = builder.compile()


@plugin.runner(
    "default",
    label="LangGraph agent",
    permissions={"models": ["stream"], "tools": ["detail", "call"]},
)
async def run(ctx: RunCtx, api: Api) -> AsyncIterator[Result]:
    if not ctx.resources.models:
        raise RunFailure("agent.no_model", "the agent's grant has no model")
    host = Host(ctx, api, str(ctx.config.get("model") or ctx.resources.models[0].model_id))
    prompt = str(ctx.config.get("prompt") or "You are a helpful assistant.")
    begin: Talk = {"messages": [{"role": "system", "content": prompt}, {"role": "user", "content": ctx.text}]}
    talk = await graph.ainvoke(begin, {"recursion_limit": 2 * ROUNDS_MAX}, context=host)
    yield message(talk["messages"][-1]["content"])


if __name__ == "__main__":
    plugin.serve()
