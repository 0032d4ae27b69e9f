"""Knowledge bases: `api.knowledge`, by their ids in `ctx.resources.knowledge_bases`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from greenroom_sdk import protocol
from greenroom_sdk.api.asking import Asking


class KnowledgeApi:
    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    async def list(self) -> Sequence[protocol.KnowledgeBaseResource]:
        """The knowledge bases that were granted."""
        params, answer = protocol.KnowledgeListParams, protocol.KnowledgeBases
        return (await self._asking.ask("knowledge.list", params, answer)).items

    async def retrieve(
        self, kb_id: str, query_text: str, top_k: int = 5, filters: Mapping[str, Any] | None = None
    ) -> Sequence[protocol.KnowledgePassage]:
        """The passages that fit best, best first."""
        self._asking.check_knowledge(kb_id, "retrieve")
        fields = {"kb_id": kb_id, "query_text": query_text, "top_k": top_k, "filters": filters}
        params, answer = protocol.KnowledgeRetrieveParams, protocol.KnowledgePassages
        return (await self._asking.ask("knowledge.retrieve", params, answer, **fields)).items
