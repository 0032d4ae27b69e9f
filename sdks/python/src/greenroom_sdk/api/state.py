"""State: `api.state`, small JSON values per scope. `ctx.state` is a snapshot from the start of the run."""

from __future__ import annotations

from typing import Any

from greenroom_sdk import protocol
from greenroom_sdk.api.host_calls import HostCalls
from greenroom_sdk.errors import PayloadTooLarge
from greenroom_sdk.protocol._rules import STATE_VALUE_BYTES_MAX
from greenroom_sdk.wire.encoding import NotJson, TooLarge, encode


class StateApi:
    def __init__(self, host: HostCalls) -> None:
        self._host = host

    async def get(self, scope: protocol.StateScope, key: str) -> protocol.StateValue:
        """`.value` and `.version`; `None` and 0 when there is none."""
        params, answer = protocol.StateGetParams, protocol.StateValue
        return await self._host.request("state.get", params, answer, scope=scope, key=key)

    async def set(
        self,
        scope: protocol.StateScope,
        key: str,
        value: Any,
        if_version: int | None = None,
        ttl_s: int | None = None,
    ) -> int:
        """Writes a value and returns its version.

        With `if_version` only if the key still has it (0: is not there); else `InvalidArgument` with
        `details["reason"] == "version_conflict"`.
        """
        _check_size(value)
        fields = {"scope": scope, "key": key, "value": value, "if_version": if_version, "ttl_s": ttl_s}
        params, answer = protocol.StateSetParams, protocol.StateWritten
        return (await self._host.request("state.set", params, answer, **fields)).version

    async def delete(self, scope: protocol.StateScope, key: str, if_version: int | None = None) -> bool:
        """Deletes a key; false when it did not exist."""
        fields = {"scope": scope, "key": key, "if_version": if_version}
        params, answer = protocol.StateDeleteParams, protocol.Deleted
        return (await self._host.request("state.delete", params, answer, **fields)).deleted

    async def list(
        self,
        scope: protocol.StateScope,
        prefix: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> protocol.StatePage:
        """Entries of a scope, ordered by key; `cursor` continues after an earlier page."""
        fields = {"scope": scope, "prefix": prefix, "cursor": cursor, "limit": limit}
        params, answer = protocol.StateListParams, protocol.StatePage
        return await self._host.request("state.list", params, answer, **fields)


def _check_size(value: Any) -> None:
    try:
        size = len(encode({"": value})) - len(encode({"": 0})) + 1
    except (NotJson, TooLarge):
        return  # The call itself reports it.
    if size > STATE_VALUE_BYTES_MAX:
        raise PayloadTooLarge(f"a state value has at most {STATE_VALUE_BYTES_MAX} bytes, not {size}")
