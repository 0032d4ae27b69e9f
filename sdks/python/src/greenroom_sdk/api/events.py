"""The event log: `api.events`."""

from __future__ import annotations

from collections.abc import Sequence

from greenroom_sdk import protocol
from greenroom_sdk.api.asking import Asking


class EventsApi:
    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    async def get(self, event_id: str) -> protocol.EventView:
        """One event; `NotFound` when there is none or it is not the run's to see."""
        params, answer = protocol.EventGetParams, protocol.EventView
        return await self._asking.ask("events.get", params, answer, event_id=event_id)

    async def page(
        self,
        before_cursor: str | None = None,
        limit: int = 50,
        event_types: Sequence[str] | None = None,
        conversation_id: str | None = None,
    ) -> protocol.EventPage:
        """One page of the log, newest first: messages, tool calls, deliveries and what the host recorded."""
        return await self._asking.ask(
            "events.page",
            protocol.EventPageParams,
            protocol.EventPage,
            before_cursor=before_cursor,
            limit=limit,
            event_types=None if event_types is None else list(event_types),
            conversation_id=conversation_id,
        )
