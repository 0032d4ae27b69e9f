"""A scripted model: what it answers, turn by turn.

Invariant: an answer is the same whether it is asked for whole or as a stream.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Union

from greenroom_sdk.testing.ran import Reply

Turn = Union[str, Mapping[str, Any], Sequence[Union[str, Mapping[str, Any]]]]
"""A text, a call `{"name": …, "args": …}`, or several of them in order."""


class ScriptedModel:
    def __init__(self, name: str, turns: Sequence[Turn]) -> None:
        self._name, self._turns, self._said = name, list(turns), 0

    def answer(self, method: str) -> Reply:
        """The next turn; the last one is repeated."""
        turn = self._turns[min(self._said, len(self._turns) - 1)]
        self._said += 1
        parts = [turn] if isinstance(turn, (str, Mapping)) else list(turn)
        segments: list[dict[str, Any]] = []
        items: list[dict[str, Any]] = []
        for number, part in enumerate(parts):
            if isinstance(part, str):
                segments.append({"type": "text", "text": part})
                items += [{"type": "text_delta", "text": piece} for piece in _pieces(part)]
            else:
                call = {"id": f"call-{self._said}-{number}", "name": part["name"], "args": part.get("args", {})}
                segments.append({"type": "tool_call", "tool_call": call})
                items += _call_items(call)
        reason = "tool_calls" if any(one["type"] == "tool_call" for one in segments) else "stop"
        usage = {"input_tokens": 1, "output_tokens": len(items)}
        items += [{"type": "usage", **usage}, {"type": "finish", "reason": reason}]
        whole = {"segments": segments, "metadata": {"model": self._name, "finish_reason": reason, "usage": usage}}
        return Reply(whole, items if method == "models.stream" else ())


def _pieces(text: str) -> list[str]:
    """Words with trailing whitespace."""
    pieces = text.split(" ")
    return [piece + " " for piece in pieces[:-1]] + [pieces[-1]]


def _call_items(call: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "tool_call_start", "id": call["id"], "name": call["name"]},
        {"type": "tool_call_delta", "id": call["id"], "args_text": json.dumps(call["args"])},
        {"type": "tool_call_end", **call},
    ]
