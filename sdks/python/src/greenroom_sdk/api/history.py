"""The transcript: `api.history`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from greenroom_sdk import protocol
from greenroom_sdk.api.host_calls import HostCalls


class HistoryApi:
    def __init__(self, host: HostCalls) -> None:
        self._host = host

    async def page(
        self,
        conversation_id: str | None = None,
        before_cursor: str | None = None,
        after_cursor: str | None = None,
        limit: int = 50,
        direction: protocol.Direction = "backward",
        include_artifacts: bool = False,
    ) -> protocol.HistoryPage:
        """One page of the conversation, oldest item first; by default the last items before this run's event.

        `next_cursor` goes on in the direction that was asked for, while `has_more` says so.
        """
        return await self._host.request(
            "history.page",
            protocol.HistoryPageParams,
            protocol.HistoryPage,
            conversation_id=conversation_id,
            before_cursor=before_cursor,
            after_cursor=after_cursor,
            limit=limit,
            direction=direction,
            include_artifacts=include_artifacts,
        )

    async def search(
        self, query: str, filters: protocol.HistoryFilters | Mapping[str, Any] | None = None, top_k: int = 10
    ) -> list[protocol.SearchHit]:
        """The best matches in the conversation, in any language."""
        fields = {"query": query, "filters": filters, "top_k": top_k}
        params, answer = protocol.HistorySearchParams, protocol.HistorySearchResult
        return (await self._host.request("history.search", params, answer, **fields)).items
