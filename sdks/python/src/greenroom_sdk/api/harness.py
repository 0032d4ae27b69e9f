"""What an external harness may do: `api.harness`. The deadline is paused while the run waits for a person."""

from __future__ import annotations

from typing import Any

from greenroom_sdk import protocol
from greenroom_sdk.api.host_calls import HostCalls


class HarnessApi:
    def __init__(self, host: HostCalls) -> None:
        self._host = host

    async def permission(self, kind: str, title: str, **details: Any) -> protocol.HarnessPermission:
        """Asks the host whether the harness may do this; where the agent's grant says `ask`, a person decides."""
        return await self._host.request_with_pause(
            "harness.permission",
            protocol.HarnessPermissionParams,
            protocol.HarnessPermission,
            kind=kind,
            title=title,
            **details,
        )
