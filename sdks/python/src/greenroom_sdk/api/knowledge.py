"""Knowledge bases: `api.knowledge`, by their ids in `ctx.resources.knowledge_bases`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from greenroom_sdk import protocol
from greenroom_sdk.api.host_calls import HostCalls


class KnowledgeApi:
    def __init__(self, host: HostCalls) -> None:
        self._host = host

    async def list(self) -> Sequence[protocol.KnowledgeBaseResource]:
        """The granted knowledge bases."""
        params, answer = protocol.KnowledgeListParams, protocol.KnowledgeBases
        return (await self._host.request("knowledge.list", params, answer)).items

    async def retrieve(
        self, kb_id: str, query_text: str, top_k: int = 5, filters: Mapping[str, Any] | None = None
    ) -> Sequence[protocol.KnowledgePassage]:
        """The best matching passages, best first."""
        self._host.check_knowledge(kb_id, "retrieve")
        fields = {"kb_id": kb_id, "query_text": query_text, "top_k": top_k, "filters": filters}
        params, answer = protocol.KnowledgeRetrieveParams, protocol.KnowledgePassages
        return (await self._host.request("knowledge.retrieve", params, answer, **fields)).items
