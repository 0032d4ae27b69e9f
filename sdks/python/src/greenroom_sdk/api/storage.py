"""Storage: `api.storage`, blobs that the host keeps per area. Bytes come out as they went in."""

from __future__ import annotations

import base64

from greenroom_sdk import protocol
from greenroom_sdk.api.artifacts import decoded
from greenroom_sdk.api.asking import Asking


class StorageApi:
    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    async def get(self, area: protocol.StorageArea, key: str) -> bytes | None:
        """The bytes of a key, if it is there."""
        self._asking.check_area(area)
        params, answer = protocol.StorageGetParams, protocol.StorageValue
        found = await self._asking.ask("storage.get", params, answer, area=area, key=key)
        return None if found.data_base64 is None else decoded("storage.get", found.data_base64)

    async def set(self, area: protocol.StorageArea, key: str, value: bytes) -> None:
        """Keeps bytes under a key, in place of what was there; `/` may divide the key into parts."""
        self._asking.check_area(area)
        fields = {"area": area, "key": key, "value": base64.b64encode(value).decode("ascii")}
        await self._asking.ask("storage.set", protocol.StorageSetParams, protocol.StorageWritten, **fields)

    async def delete(self, area: protocol.StorageArea, key: str) -> bool:
        """Removes a key; false when there was none."""
        self._asking.check_area(area)
        params, answer = protocol.StorageDeleteParams, protocol.Deleted
        return (await self._asking.ask("storage.delete", params, answer, area=area, key=key)).deleted

    async def list(
        self,
        area: protocol.StorageArea,
        prefix: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> protocol.StoragePage:
        """Keys of an area with their sizes; `cursor` goes on after an earlier page."""
        self._asking.check_area(area)
        fields = {"area": area, "prefix": prefix, "cursor": cursor, "limit": limit}
        params, answer = protocol.StorageListParams, protocol.StoragePage
        return await self._asking.ask("storage.list", params, answer, **fields)
