"""State and storage of a test host, kept in two dictionaries."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from greenroom_sdk.testing.ran import Refuse


class Memory:
    """`state[scope, key]` is a value with its version, `storage[area, key]` bytes."""

    def __init__(self) -> None:
        self.state: dict[tuple[str, str], tuple[Any, int]] = {}
        self.storage: dict[tuple[str, str], bytes] = {}

    def answer(self, method: str, params: Mapping[str, Any]) -> Any:
        handle = getattr(self, method.replace(".", "_"))
        return handle(params)

    def state_get(self, params: Mapping[str, Any]) -> Any:
        value, version = self.state.get((params["scope"], params["key"]), (None, 0))
        return {"value": value, "version": version}

    def state_set(self, params: Mapping[str, Any]) -> Any:
        place = (params["scope"], params["key"])
        version = self.state.get(place, (None, 0))[1]
        if params.get("if_version") not in (None, version):
            return Refuse("invalid_argument", "the version is another", details={"reason": "version_conflict"})
        self.state[place] = (params["value"], version + 1)
        return {"version": version + 1}

    def state_delete(self, params: Mapping[str, Any]) -> Any:
        return {"deleted": self.state.pop((params["scope"], params["key"]), None) is not None}

    def state_list(self, params: Mapping[str, Any]) -> Any:
        prefix = params.get("prefix") or ""
        kept = sorted((key, value) for (scope, key), value in self.state.items() if scope == params["scope"])
        items = [{"key": key, "value": value, "version": n} for key, (value, n) in kept if key.startswith(prefix)]
        return {"items": items, "next_cursor": None, "has_more": False}

    def storage_get(self, params: Mapping[str, Any]) -> Any:
        found = self.storage.get((params["area"], params["key"]))
        text = None if found is None else base64.b64encode(found).decode("ascii")
        return {"data_base64": text, "size_bytes": len(found or b"")}

    def storage_set(self, params: Mapping[str, Any]) -> Any:
        data = base64.b64decode(params["value"])
        self.storage[params["area"], params["key"]] = data
        return {"size_bytes": len(data)}

    def storage_delete(self, params: Mapping[str, Any]) -> Any:
        return {"deleted": self.storage.pop((params["area"], params["key"]), None) is not None}

    def storage_list(self, params: Mapping[str, Any]) -> Any:
        prefix, at = params.get("prefix") or "", "2026-01-01T00:00:00.000Z"
        kept = sorted((key, len(data)) for (area, key), data in self.storage.items() if area == params["area"])
        items = [{"key": key, "size_bytes": n, "updated_at": at} for key, n in kept if key.startswith(prefix)]
        return {"items": items, "next_cursor": None, "has_more": False}
