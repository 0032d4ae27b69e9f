"""Actions on the platform: `api.platform`. A run that waits for a person loses none of its time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from greenroom_sdk import protocol
from greenroom_sdk.api.asking import Asking


class PlatformApi:
    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    async def request_action(
        self,
        action: str,
        target: Mapping[str, Any] | None = None,
        payload: Mapping[str, Any] | None = None,
    ) -> protocol.ActionOutcome:
        """Asks for an action such as `message.send`, and waits until it is carried out.

        Where the agent's policy says `ask`, also until a person has allowed it. A denial is `Unauthorized` with
        `details["reason"]` `denied`, `expired` or `not_granted`.
        """
        return await self._asking.ask_patiently(
            "platform.request_action",
            protocol.RequestActionParams,
            protocol.ActionOutcome,
            action=action,
            target=dict(target or {}),
            payload=dict(payload or {}),
        )
