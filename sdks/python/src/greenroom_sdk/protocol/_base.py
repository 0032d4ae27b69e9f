"""Base classes of the protocol structures: parsing and serialization.

Invariant: the output has every field that the protocol always writes, and no absent ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer, model_validator

from greenroom_sdk.protocol import _rules


class Wire(BaseModel):
    """A structure of the protocol; unknown fields are ignored."""

    # Built on first use: a runner needs few of them and should start fast.
    model_config = ConfigDict(protected_namespaces=(), populate_by_name=True, extra="ignore", defer_build=True)

    def wire(self) -> dict[str, Any]:
        """The JSON object that goes over the wire."""
        return self.model_dump(by_alias=True)


class Open(Wire):
    """A structure that keeps unknown fields."""

    model_config = ConfigDict(extra="allow")


class Closed(Wire):
    """A structure that rejects unknown fields."""

    model_config = ConfigDict(extra="forbid")


class Omits(BaseModel):
    """Omits the named fields when they are null or empty."""

    _omitted: ClassVar[frozenset[str]] = frozenset()

    @model_serializer(mode="wrap")
    def _without_absent(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = handler(self)
        for name in self._omitted:
            if name in written and (written[name] is None or written[name] in ({}, [])):
                del written[name]
        return written


class NullIsAbsent(BaseModel):
    """Reads null in the named fields as absent."""

    _nulls: ClassVar[frozenset[str]] = frozenset()

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return {name: field for name, field in value.items() if field is not None or name not in cls._nulls}


class Checked(BaseModel):
    """Has rules beyond its schema, see `_rules`."""

    @model_validator(mode="after")
    def _follows_its_rule(self) -> Checked:
        _rules.RULES[type(self).__name__](self)
        return self
