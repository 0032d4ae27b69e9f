"""Messages that arrive during the run: `api.steering`. The run must answer the ones it pulled."""

from __future__ import annotations

from greenroom_sdk import protocol
from greenroom_sdk.api.host_calls import HostCalls


class SteeringApi:
    def __init__(self, host: HostCalls) -> None:
        self._host = host

    async def pull(self, limit: int | None = None) -> list[protocol.SteeringItem]:
        """Takes the pending messages, oldest first; empty when there are none."""
        params, answer = protocol.SteeringPullParams, protocol.SteeringItems
        return (await self._host.request("steering.pull", params, answer, limit=limit)).items
