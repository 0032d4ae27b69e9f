"""The event log: `api.events`."""

from __future__ import annotations

from collections.abc import Sequence

from greenroom_sdk import protocol
from greenroom_sdk.api.host_calls import HostCalls


class EventsApi:
    def __init__(self, host: HostCalls) -> None:
        self._host = host

    async def get(self, event_id: str) -> protocol.EventView:
        """One event; `NotFound` when it does not exist or the run may not see it."""
        params, answer = protocol.EventGetParams, protocol.EventView
        return await self._host.request("events.get", params, answer, event_id=event_id)

    async def page(
        self,
        before_cursor: str | None = None,
        limit: int = 50,
        event_types: Sequence[str] | None = None,
        conversation_id: str | None = None,
    ) -> protocol.EventPage:
        """One page of the log, newest first: messages, tool calls, deliveries and the host's own records."""
        return await self._host.request(
            "events.page",
            protocol.EventPageParams,
            protocol.EventPage,
            before_cursor=before_cursor,
            limit=limit,
            event_types=None if event_types is None else list(event_types),
            conversation_id=conversation_id,
        )
