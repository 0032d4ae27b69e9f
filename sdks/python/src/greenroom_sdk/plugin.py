"""A plugin and its runners and tools.

Invariant: every runner of a served plugin has a valid, unique id and every tool a valid description and a unique name.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, TypedDict, TypeVar, Union

from pydantic import ValidationError

from greenroom_sdk import protocol
from greenroom_sdk.api import Api
from greenroom_sdk.context import RunCtx
from greenroom_sdk.errors import InvalidPlugin, reasons
from greenroom_sdk.results import Result
from greenroom_sdk.tool import Tool, ToolFunction

TOOLS_MAX = 500
CANCEL_GRACE_S = 2.0

Text = Union[str, dict[str, str]]
"""A text, or one per locale: `{"en_US": "Parrot", "zh_Hans": "鹦鹉"}`."""
Work = Union[AsyncIterator[Result], Awaitable[None]]
RunFunction = Union[Callable[[RunCtx], Work], Callable[[RunCtx, Api], Work]]
F = TypeVar("F", bound=RunFunction)
T = TypeVar("T", bound=ToolFunction)


class Capabilities(TypedDict, total=False):
    """What a runner can do; `streaming` and `interrupt` are on by default."""

    streaming: bool
    tool_calling: bool
    knowledge_retrieval: bool
    multimodal_input: bool
    event_context: bool
    platform_api: bool
    interrupt: bool
    stateful_session: bool
    self_managed_context: bool
    steering: bool


class Permissions(TypedDict, total=False):
    """The permissions a runner requests; the agent's `grant` decides."""

    models: Sequence[Literal["invoke", "stream", "rerank", "embed"]]
    tools: Sequence[Literal["detail", "call"]]
    knowledge_bases: Sequence[Literal["list", "retrieve"]]
    history: Sequence[Literal["page", "search"]]
    events: Sequence[Literal["get", "page"]]
    artifacts: Sequence[Literal["metadata", "read", "create"]]
    storage: Sequence[Literal["plugin", "workspace", "binding"]]
    platform_api: Sequence[str]
    files: Sequence[str]


class Context(TypedDict, total=False):
    """How a runner uses its context; informational, except for `wants_static_context_refs`."""

    supports_history_pull: bool
    supports_history_search: bool
    supports_artifact_pull: bool
    owns_compaction: bool
    wants_static_context_refs: bool
    """`True`: tools come by reference, without the schemas, which `api.tools.get_detail` returns."""


class Manifest:
    """The manifest of a runner. `Manifest("default")` is complete; the rest is optional."""

    def __init__(
        self,
        name: str = "default",
        *,
        label: Text | None = None,
        description: Text | None = None,
        capabilities: Capabilities | None = None,
        permissions: Permissions | None = None,
        context: Context | None = None,
        config_schema: Sequence[protocol.DynamicFormItemSchema | Mapping[str, Any]] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        requested: Permissions = permissions or {}
        derived: dict[str, Any] = {
            "streaming": True,
            "interrupt": True,
            "tool_calling": bool(requested.get("tools")),
            "knowledge_retrieval": bool(requested.get("knowledge_bases")),
            "platform_api": bool(requested.get("platform_api")),
        }
        self.name = name
        self._fields: dict[str, Any] = {
            "name": name,
            "label": label or name,
            "description": description,
            "capabilities": derived | dict(capabilities or {}),
            "permissions": {key: list(value) for key, value in requested.items() if isinstance(value, (list, tuple))},
            "context": dict(context or {}),
            "config_schema": list(config_schema),
            "metadata": dict(metadata or {}),
        }

    def of(self, author: str, plugin: str) -> protocol.AgentRunnerManifest:
        runner_id = f"plugin:{author}/{plugin}/{self.name}"
        try:
            return protocol.AgentRunnerManifest.model_validate({"id": runner_id, **self._fields})
        except ValidationError as error:
            raise InvalidPlugin(f"the manifest of `{runner_id}` is not valid: {reasons(error)}") from None


class Runner:
    """An agent: it receives one event per run and answers with results. Many runs are active at the same time.

    class Parrot(Runner):
        manifest = Manifest("default", label="Parrot")

        async def run(self, ctx: RunCtx, api: Api) -> AsyncIterator[Result]:
            yield message(f"You said: {ctx.text}")
    """

    manifest: ClassVar[Manifest] = Manifest()

    def run(self, ctx: RunCtx, api: Api) -> AsyncIterator[Result]:
        raise NotImplementedError(f"`{type(self).__name__}` has no method `run`")


class Plugin:
    """A process that offers runners, tools, or both."""

    def __init__(
        self, author: str, name: str, version: str = "0.1.0", *, cancel_grace_s: float = CANCEL_GRACE_S
    ) -> None:
        self.author, self.name, self.version = author, name, version
        self.cancel_grace_s = cancel_grace_s
        """How long a cancelled run may clean up before it is abandoned."""
        self._runners: dict[str, tuple[Manifest, Callable[[RunCtx], Work]]] = {}
        self._tools: dict[str, Tool] = {}

    def runner(
        self,
        name: str = "default",
        *,
        label: Text | None = None,
        description: Text | None = None,
        capabilities: Capabilities | None = None,
        permissions: Permissions | None = None,
        context: Context | None = None,
        config_schema: Sequence[protocol.DynamicFormItemSchema | Mapping[str, Any]] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> Callable[[F], F]:
        """Offers an async generator `async def run(ctx)` or `async def run(ctx, api)` as a runner."""
        manifest = Manifest(
            name,
            label=label,
            description=description,
            capabilities=capabilities,
            permissions=permissions,
            context=context,
            config_schema=config_schema,
            metadata=metadata,
        )

        def offer(function: F) -> F:
            self._offer(manifest, function)
            return function

        return offer

    def add(self, runner: Runner) -> Plugin:
        """Offers a runner written as a class."""
        self._offer(runner.manifest, runner.run)
        return self

    def tool(
        self,
        name: str | None = None,
        *,
        description: str | None = None,
        risk: protocol.ToolRisk = "external",
        timeout_s: int | None = None,
    ) -> Callable[[T], T]:
        """Offers a function as a tool; its parameters and docstring describe it."""

        def offer(function: T) -> T:
            tool = Tool.of(function, name=name, description=description, risk=risk, timeout_s=timeout_s)
            if tool.name in self._tools:
                raise InvalidPlugin(f"the tool `{tool.name}` is defined twice")
            self._tools[tool.name] = tool
            return function

        return offer

    def serve(self) -> None:
        """Serves until the host shuts the plugin down, then ends the process.

        Over WebSocket when `GREENROOM_URL` and `GREENROOM_RUNNER_TOKEN` are set, over stdin and stdout if neither is.
        """
        from greenroom_sdk.serving import serve

        serve(self)

    def checked(self) -> CheckedPlugin:
        """The validated plugin; raises `InvalidPlugin`."""
        if not self._runners and not self._tools:
            raise InvalidPlugin("the plugin offers no runner and no tool")
        if len(self._tools) > TOOLS_MAX:
            raise InvalidPlugin(f"a plugin offers at most {TOOLS_MAX} tools, this one has {len(self._tools)}")
        runners = {}
        for manifest, start in self._runners.values():
            full = manifest.of(self.author, self.name)
            runners[full.id] = (full, start)
        return CheckedPlugin(self, runners, self._tools)

    def _offer(self, manifest: Manifest, function: RunFunction) -> None:
        if manifest.name in self._runners:
            raise InvalidPlugin(f"the runner `{manifest.name}` is defined twice")
        self._runners[manifest.name] = (manifest, _with_ctx(function))


class CheckedPlugin:
    def __init__(
        self,
        plugin: Plugin,
        runners: dict[str, tuple[protocol.AgentRunnerManifest, Callable[[RunCtx], Work]]],
        tools: dict[str, Tool],
    ) -> None:
        self.identity = {"author": plugin.author, "name": plugin.name, "version": plugin.version}
        self.cancel_grace_s = plugin.cancel_grace_s
        self.runners, self.tools = runners, tools


def _with_ctx(function: RunFunction) -> Callable[[RunCtx], Work]:
    """The function with `ctx` as its only parameter."""
    name = getattr(function, "__qualname__", repr(function))
    if not inspect.isasyncgenfunction(function) and not inspect.iscoroutinefunction(function):
        raise InvalidPlugin(f"`{name}` must be written with `async def`")
    count = len(inspect.signature(function).parameters)
    if count == 1:
        only_ctx: Any = function
        return lambda ctx: only_ctx(ctx)
    if count == 2:
        with_api: Any = function
        return lambda ctx: with_api(ctx, ctx.api)
    raise InvalidPlugin(f"`{name}` must take `ctx`, or `ctx` and `api`; it takes {count} parameters")
