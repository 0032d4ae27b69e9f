"""RAG answerer: searches the granted knowledge bases and answers from the passages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from greenroom_sdk import Api, Plugin, Result, RunCtx, RunFailure, delta, message
from greenroom_sdk.protocol import KnowledgePassage

PROMPT = """Answer the question with the numbered passages alone, and name those you used, such as [1].
Say that you do not know when they do not tell.

{passages}"""

plugin = Plugin("examples", "rag-answerer")


@plugin.runner(
    "default",
    label={"en_US": "RAG answerer", "zh_Hans": "知识库问答"},
    permissions={"models": ["stream"], "knowledge_bases": ["list", "retrieve"], "history": ["page"]},
    config_schema=[
        {"name": "top_k", "label": "Passages", "type": "integer", "default": 5},
        {"name": "history", "label": "Earlier messages", "type": "integer", "default": 6},
    ],
)
async def answer(ctx: RunCtx, api: Api) -> AsyncIterator[Result]:
    models = [model.model_id for model in ctx.resources.models]
    if not models:
        raise RunFailure("agent.no_model", "the agent's grant has no model")
    passages = await find(ctx, api)
    numbered = "\n\n".join(f"[{number}] {one.content}" for number, one in enumerate(passages, 1))
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": PROMPT.format(passages=numbered or "(none)")},
        *await earlier(ctx, api),
        {"role": "user", "content": ctx.text},
    ]
    stream = api.models.stream(str(ctx.config.get("model") or models[0]), messages)
    async for item in stream:
        if item.type == "text_delta":
            yield delta(item.text)
    if stream.response is not None:
        sources = [one.metadata for one in passages]
        ctx.set_usage(stream.response.usage)
        yield message(stream.response.text, metadata={"sources": sources})


async def find(ctx: RunCtx, api: Api) -> list[KnowledgePassage]:
    """The best passages of all knowledge bases."""
    top_k = int(ctx.config.get("top_k", 5))
    found: list[KnowledgePassage] = []
    for base in ctx.resources.knowledge_bases:
        found += await api.knowledge.retrieve(base.kb_id, ctx.text, top_k=top_k)
    return sorted(found, key=lambda one: one.score, reverse=True)[:top_k]


async def earlier(ctx: RunCtx, api: Api) -> list[dict[str, Any]]:
    """The history, if the run may read it."""
    if not ctx.context.available_apis.history_page:
        return []
    page = await api.history.page(limit=int(ctx.config.get("history", 6)))
    spoken = (item for item in page.items if item.role in ("user", "assistant") and item.text)
    return [{"role": item.role, "content": item.text} for item in spoken]


if __name__ == "__main__":
    plugin.serve()
