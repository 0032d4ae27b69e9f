"""Tools of a plugin: described by their functions, answered once, isolated from each other."""

from __future__ import annotations

import threading
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from greenroom_sdk import InvalidPlugin, Plugin, ToolCtx, ToolError, ToolOutput, testing


class Rolled(BaseModel):
    total: int


def dice() -> Plugin:
    plugin = Plugin("tests", "dice")

    @plugin.tool(risk="read", timeout_s=5)
    async def roll(
        sides: Annotated[int, Field(ge=2, description="How many sides each die has")], count: int = 1
    ) -> Rolled:
        """Rolls dice and gives their total"""
        return Rolled(total=sides * count)

    @plugin.tool("where")
    def where(ctx: ToolCtx, how: Literal["thread", "id"]) -> str:
        return threading.current_thread().name if how == "thread" else ctx.tool_call_id

    @plugin.tool()
    async def fail(kind: str) -> Any:
        if kind == "own":
            raise ToolError("dice.lost", "they are gone", retryable=True)
        if kind == "large":
            return "x" * (9 * 1024 * 1024)
        if kind == "odd":
            return {"set": {1}}
        if kind == "exit":
            raise SystemExit(1)
        return 1 // 0

    @plugin.tool()
    async def told() -> ToolOutput:
        return ToolOutput({"n": 1}, "one")

    return plugin


def test_a_tool_is_described_by_its_function() -> None:
    described = dice().checked().tools["roll"].described.wire()
    assert described == {
        "name": "roll",
        "description": "Rolls dice and gives their total",
        "input_schema": {
            "type": "object",
            "properties": {
                "sides": {"type": "integer", "minimum": 2, "description": "How many sides each die has"},
                "count": {"type": "integer", "default": 1},
            },
            "required": ["sides"],
            "additionalProperties": False,
        },
        "output_schema": {
            "type": "object",
            "title": "Rolled",
            "properties": {"total": {"type": "integer", "title": "Total"}},
            "required": ["total"],
        },
        "risk": "read",
        "timeout_s": 5,
    }


def test_a_tool_answers_with_its_result() -> None:
    assert testing.call_tool(dice(), "roll", {"sides": 6, "count": 2}).result == {"total": 12}
    told = testing.call_tool(dice(), "told")
    assert (told.result, told.content, told.text) == ({"n": 1}, "one", "one")


def test_a_plain_function_gets_a_thread_and_any_function_the_call() -> None:
    assert testing.call_tool(dice(), "where", {"how": "thread"}).result != "MainThread"
    assert testing.call_tool(dice(), "where", {"how": "id"}).result == "call-1"


@pytest.mark.parametrize(
    ("name", "parameters", "code", "sentence"),
    [
        ("roll", {"sides": 1}, "invalid_argument", "`sides`"),
        ("roll", {"sides": 6, "colour": "red"}, "invalid_argument", "`colour`"),
        ("fail", {"kind": "own"}, "dice.lost", "they are gone"),
        ("fail", {"kind": "large"}, "payload_too_large", "bytes"),
        ("fail", {"kind": "odd"}, "tool.error", "the result is not JSON: set has no JSON form"),
        ("fail", {"kind": "exit"}, "tool.error", "SystemExit"),
        ("fail", {"kind": "x"}, "tool.error", "ZeroDivisionError"),
    ],
)
def test_what_goes_wrong_is_told_with_a_code(name: str, parameters: Any, code: str, sentence: str) -> None:
    answer = testing.call_tool(dice(), name, parameters)
    assert answer.result is None
    assert answer.error["code"] == code
    assert sentence in answer.error["message"]


def test_a_tool_that_is_not_there_is_refused() -> None:
    with pytest.raises(testing.WireViolation, match="unknown tool `none`"):
        testing.call_tool(dice(), "none")


def test_a_tool_that_cannot_be_offered_says_why() -> None:
    plugin = Plugin("a", "b")

    async def spread(*numbers: int) -> int:
        return sum(numbers)

    async def fine() -> int:
        return 1

    with pytest.raises(InvalidPlugin, match="`numbers` is not a named parameter"):
        plugin.tool()(spread)
    with pytest.raises(InvalidPlugin, match="1 to 128 of the characters"):
        plugin.tool("天气")(fine)
    plugin.tool()(fine)
    with pytest.raises(InvalidPlugin, match="`fine` is defined twice"):
        plugin.tool()(fine)
