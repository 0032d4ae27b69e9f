"""What the structures of the protocol can do beyond holding their fields.

Invariant: nothing here adds a field.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel


class Answer(BaseModel):
    """A model's whole answer, as text and as the calls it asks for."""

    @property
    def text(self) -> str:
        """All text of the answer, without its reasoning."""
        return "".join(part.get("text") or "" for part in self._segments() if part.get("type") == "text")

    @property
    def reasoning(self) -> str:
        return "".join(part.get("text") or "" for part in self._segments() if part.get("type") == "reasoning")

    @property
    def tool_calls(self) -> list[dict[str, Any]]:
        """The calls the model asks for: `{"id", "name", "args"}` each."""
        calls = (part.get("tool_call") for part in self._segments() if part.get("type") == "tool_call")
        return [call for call in calls if call]

    @property
    def usage(self) -> dict[str, Any] | None:
        found: dict[str, Any] | None = getattr(self, "metadata", {}).get("usage")
        return found

    @property
    def finish_reason(self) -> str | None:
        found: str | None = getattr(self, "metadata", {}).get("finish_reason")
        return found

    def _segments(self) -> list[dict[str, Any]]:
        segments: list[dict[str, Any]] = getattr(self, "segments", [])
        return segments


class ToolAnswer(BaseModel):
    """What a tool answered, as a model reads it."""

    @property
    def text(self) -> str:
        """The tool's text, else its error or its result as JSON."""
        content: str | None = getattr(self, "content", None)
        error = getattr(self, "error", None)
        if content is not None:
            return content
        value = {"error": error} if error is not None else getattr(self, "result", None)
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
