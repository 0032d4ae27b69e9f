"""Tools that a plugin offers. (Tools that a run may call are in `api/tools.py`.)

Invariant: a tool is described by its function; any failure ends only its own call, with an error that has a code.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_type_hints

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError, create_model

from greenroom_sdk import protocol
from greenroom_sdk.errors import InvalidPlugin, ToolError, reasons
from greenroom_sdk.wire.deadline import Deadline

ToolFunction = Callable[..., Any]


@dataclass(frozen=True)
class ToolCtx:
    """One call of a tool; passed to the parameter with this type."""

    tool_call_id: str
    run_id: str | None
    deadline: Deadline

    @property
    def remaining(self) -> float | None:
        """Seconds until the host cancels the call."""
        return self.deadline.remaining()


@dataclass(frozen=True)
class ToolOutput:
    """A result with a separate text for the model, instead of the result's JSON."""

    result: Any
    content: str


class Tool:
    """A function with a name, a description and a risk, which the host offers as `RUNNER.name`."""

    def __init__(self, described: protocol.PluginTool, function: ToolFunction, parameters: Any, context: str | None):
        self.described, self._function, self._parameters, self._context = described, function, parameters, context
        self.name = described.name

    @classmethod
    def of(
        cls,
        function: ToolFunction,
        *,
        name: str | None,
        description: str | None,
        risk: protocol.ToolRisk,
        timeout_s: int | None,
    ) -> Tool:
        name = str(name or getattr(function, "__name__", ""))
        try:
            parameters, context = _parameters(function, name)
            described = protocol.PluginTool.model_validate(
                {
                    "name": name,
                    "description": description or inspect.getdoc(function),
                    "input_schema": _schema(parameters),
                    "output_schema": _output_schema(function),
                    "risk": risk,
                    "timeout_s": timeout_s,
                }
            )
        except ValidationError as error:
            raise InvalidPlugin(f"the tool `{name}` cannot be offered: {reasons(error)}") from None
        except PydanticUserError as error:
            raise InvalidPlugin(f"the tool `{name}` cannot be offered: {error.message}") from None
        return cls(described, function, parameters, context)

    async def call(self, params: protocol.CallToolParams) -> Any:
        """The result of the function; `ToolError` when the parameters are invalid."""
        try:
            taken = self._parameters.model_validate(params.parameters)
        except ValidationError as error:
            raise ToolError("invalid_argument", reasons(error)) from None
        arguments = {field: getattr(taken, field) for field in type(taken).model_fields}
        if self._context is not None:
            deadline = Deadline(params.deadline_ms)
            arguments[self._context] = ToolCtx(params.tool_call_id, params.run_id, deadline)
        if inspect.iscoroutinefunction(self._function):
            return await self._function(**arguments)
        # A plain function may block, so it gets a thread.
        return await asyncio.to_thread(self._function, **arguments)


def _parameters(function: ToolFunction, name: str) -> tuple[Any, str | None]:
    """The function's parameters as a pydantic model, and the name of the context parameter."""
    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    context: str | None = None
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise InvalidPlugin(f"the tool `{name}` cannot be offered: `{parameter.name}` is not a named parameter")
        hint = hints.get(parameter.name, Any)
        if hint is ToolCtx:
            context = parameter.name
        else:
            default = ... if parameter.default is parameter.empty else parameter.default
            fields[parameter.name] = (hint, default)
    config = ConfigDict(extra="forbid", protected_namespaces=())
    return create_model(f"{name or 'tool'}_parameters", __config__=config, **fields), context


def _schema(parameters: Any) -> dict[str, Any]:
    schema: dict[str, Any] = parameters.model_json_schema()
    schema.pop("title", None)
    for part in schema.get("properties", {}).values():
        part.pop("title", None)
    return schema


def _output_schema(function: ToolFunction) -> dict[str, Any] | None:
    """Only for results that are objects."""
    hint = get_type_hints(function).get("return", Any)
    if hint in (Any, None, type(None), ToolOutput):
        return None
    try:
        schema = TypeAdapter(hint).json_schema(mode="serialization")
    except (PydanticUserError, TypeError):
        return None
    return schema if schema.get("type") == "object" else None
