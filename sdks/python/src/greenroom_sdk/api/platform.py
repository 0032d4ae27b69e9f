"""Actions on the platform: `api.platform`. The deadline is paused while the run waits for a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from greenroom_sdk import protocol
from greenroom_sdk.api.host_calls import HostCalls


class PlatformApi:
    def __init__(self, host: HostCalls) -> None:
        self._host = host

    async def request_action(
        self,
        action: str,
        target: Mapping[str, Any] | None = None,
        payload: Mapping[str, Any] | None = None,
    ) -> protocol.ActionOutcome:
        """Requests an action such as `message.send` and waits until it is carried out.

        Where the agent's policy says `ask`, also until a person has allowed it. A denial is `Unauthorized` with
        `details["reason"]` `denied`, `expired` or `not_granted`.
        """
        return await self._host.request_with_pause(
            "platform.request_action",
            protocol.RequestActionParams,
            protocol.ActionOutcome,
            action=action,
            target=dict(target or {}),
            payload=dict(payload or {}),
        )
