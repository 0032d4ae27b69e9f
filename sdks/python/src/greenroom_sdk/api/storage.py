"""Storage: `api.storage`, blobs per area."""

from __future__ import annotations

import base64

from greenroom_sdk import protocol
from greenroom_sdk.api.artifacts import decoded
from greenroom_sdk.api.host_calls import HostCalls


class StorageApi:
    def __init__(self, host: HostCalls) -> None:
        self._host = host

    async def get(self, area: protocol.StorageArea, key: str) -> bytes | None:
        """The bytes of a key, if it exists."""
        self._host.check_area(area)
        params, answer = protocol.StorageGetParams, protocol.StorageValue
        found = await self._host.request("storage.get", params, answer, area=area, key=key)
        return None if found.data_base64 is None else decoded("storage.get", found.data_base64)

    async def set(self, area: protocol.StorageArea, key: str, value: bytes) -> None:
        """Stores bytes under a key, replacing earlier ones; `/` may separate parts of the key."""
        self._host.check_area(area)
        fields = {"area": area, "key": key, "value": base64.b64encode(value).decode("ascii")}
        await self._host.request("storage.set", protocol.StorageSetParams, protocol.StorageWritten, **fields)

    async def delete(self, area: protocol.StorageArea, key: str) -> bool:
        """Deletes a key; false when it did not exist."""
        self._host.check_area(area)
        params, answer = protocol.StorageDeleteParams, protocol.Deleted
        return (await self._host.request("storage.delete", params, answer, area=area, key=key)).deleted

    async def list(
        self,
        area: protocol.StorageArea,
        prefix: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> protocol.StoragePage:
        """Keys of an area with their sizes; `cursor` continues after an earlier page."""
        self._host.check_area(area)
        fields = {"area": area, "prefix": prefix, "cursor": cursor, "limit": limit}
        params, answer = protocol.StorageListParams, protocol.StoragePage
        return await self._host.request("storage.list", params, answer, **fields)
