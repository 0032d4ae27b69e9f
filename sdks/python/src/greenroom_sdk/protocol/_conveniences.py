"""Convenience properties of protocol structures.

Invariant: nothing here adds a field.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel


class Answer(BaseModel):
    """A model's complete answer: text and tool calls."""

    @property
    def text(self) -> str:
        """The text of the answer, without reasoning."""
        return "".join(part.get("text") or "" for part in self._segments() if part.get("type") == "text")

    @property
    def reasoning(self) -> str:
        return "".join(part.get("text") or "" for part in self._segments() if part.get("type") == "reasoning")

    @property
    def tool_calls(self) -> list[dict[str, Any]]:
        """The tool calls of the model: `{"id", "name", "args"}` each."""
        calls = (part.get("tool_call") for part in self._segments() if part.get("type") == "tool_call")
        return [call for call in calls if call]

    @property
    def usage(self) -> dict[str, Any] | None:
        value: dict[str, Any] | None = getattr(self, "metadata", {}).get("usage")
        return value

    @property
    def finish_reason(self) -> str | None:
        value: str | None = getattr(self, "metadata", {}).get("finish_reason")
        return value

    def _segments(self) -> list[dict[str, Any]]:
        segments: list[dict[str, Any]] = getattr(self, "segments", [])
        return segments


class ToolAnswer(BaseModel):
    """The result of a tool, as a model reads it."""

    @property
    def text(self) -> str:
        """The tool's text, else its error or its result as JSON."""
        content: str | None = getattr(self, "content", None)
        error = getattr(self, "error", None)
        if content is not None:
            return content
        value = {"error": error} if error is not None else getattr(self, "result", None)
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
