"""Messages that come while the run is going on: `api.steering`. What was pulled is this run's to answer."""

from __future__ import annotations

from greenroom_sdk import protocol
from greenroom_sdk.api.asking import Asking


class SteeringApi:
    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    async def pull(self, limit: int | None = None) -> list[protocol.SteeringItem]:
        """Takes the messages that wait, in the order in which they came; empty when there are none."""
        params, answer = protocol.SteeringPullParams, protocol.SteeringItems
        return (await self._asking.ask("steering.pull", params, answer, limit=limit)).items
