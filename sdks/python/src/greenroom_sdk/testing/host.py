"""The host's side of one run: the context it sends and its answers to calls.

Invariant: a method without an answer is refused with `unauthorized`, as a host refuses what was not granted; a method
with one is announced in `ctx.context.available_apis`.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from greenroom_sdk.api.host_calls import FLAGS
from greenroom_sdk.plugin import CheckedPlugin, Plugin
from greenroom_sdk.testing.context import context
from greenroom_sdk.testing.frames import FrameChecks, WireViolation
from greenroom_sdk.testing.memory import Memory
from greenroom_sdk.testing.models import ScriptedModel, Turn
from greenroom_sdk.testing.ran import Ran, Refuse, Reply, Request
from greenroom_sdk.wire.connection import Connection
from greenroom_sdk.wire.encoding import encode

RUN_ID, RUN_REQUEST = "run-1", 1

Answer = Callable[[Mapping[str, Any]], Any]


class Host:
    """A scripted host; every method returns the host, so that calls can be chained."""

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        self._context = context(RUN_ID, "", config or {})
        self._answers: dict[str, Answer] = {}
        self._models: dict[str, ScriptedModel] = {}
        self._tools: dict[str, Callable[..., Any]] = {}
        self._passages: dict[str, list[Mapping[str, Any]]] = {}
        self._cancel_when: Callable[[Ran], bool] = lambda ran: False
        self.memory = Memory()
        """State and storage, after `with_memory()`."""

    def on(self, method: str, answer: Answer) -> Host:
        """Answers a method; `answer` takes the parameters and returns a result, a `Reply` or a `Refuse`."""
        self._answers[method] = answer
        if method in FLAGS:
            self._context["context"]["available_apis"][FLAGS[method]] = True
        return self

    def model(self, model_id: str, turns: Sequence[Turn]) -> Host:
        """Grants a scripted model: its answers, turn by turn."""
        self._models[model_id] = ScriptedModel(model_id, turns)
        self._resource("models", {"model_id": model_id, "operations": ["invoke", "stream"]})
        for method in ("models.invoke", "models.stream"):
            self.on(method, partial(self._ask_model, method))
        return self

    def tool(
        self,
        name: str,
        function: Callable[..., Any],
        *,
        description: str = "",
        parameters: Mapping[str, Any] | None = None,
    ) -> Host:
        """Grants a tool that the host executes: `function(**parameters)`."""
        self._tools[name] = function
        schema = dict(parameters or {"type": "object"})
        told = {"tool_name": name, "description": description, "parameters": schema, "operations": ["detail", "call"]}
        self._resource("tools", told)
        self.on("tools.call", self._call_tool)
        details = {tool["tool_name"]: tool for tool in self._context["resources"]["tools"]}
        return self.on("tools.get_detail", lambda params: details[params["tool_name"]])

    def knowledge(self, kb_id: str, passages: Sequence[str | Mapping[str, Any]]) -> Host:
        """Grants a knowledge base that always returns these passages."""
        told = [one if isinstance(one, Mapping) else {"content": one, "score": 1.0} for one in passages]
        self._passages[kb_id] = told
        self._resource("knowledge_bases", {"kb_id": kb_id, "operations": ["list", "retrieve"]})
        self.on("knowledge.list", lambda params: {"items": self._context["resources"]["knowledge_bases"]})
        take = lambda params: {"items": self._passages[params["kb_id"]][: params["top_k"]]}  # noqa: E731
        return self.on("knowledge.retrieve", take)

    def with_memory(self) -> Host:
        """Grants state and storage, kept in `memory` across runs."""
        self._context["resources"]["storage"] = {"plugin": True, "binding": True, "workspace": True}
        for what in ("state", "storage"):
            for method in (f"{what}.{verb}" for verb in ("get", "set", "delete", "list")):
                self.on(method, partial(self.memory.answer, method))
        return self

    def context(self, change: Callable[[dict[str, Any]], None]) -> Host:
        """Changes the run context before the run begins."""
        change(self._context)
        return self

    def cancel_when(self, condition: Callable[[Ran], bool]) -> Host:
        """Cancels the run as soon as the condition holds."""
        self._cancel_when = condition
        return self

    def run(self, plugin: Plugin, text: str = "hello", runner: str | None = None, timeout_s: float = 30) -> Ran:
        """Runs a runner of the plugin once, by default the first one."""
        return asyncio.run(self.run_async(plugin, text, runner, timeout_s))

    async def run_async(
        self, plugin: Plugin, text: str = "hello", runner: str | None = None, timeout_s: float = 30
    ) -> Ran:
        checked = plugin.checked()
        self._context["input"] = {"text": text, "contents": [{"type": "text", "text": text}]}
        connection = Connection(checked)
        ran, checks = Ran(), FrameChecks(RUN_ID)
        try:
            connection.receive(encode(self._run_agent(checked, runner)))
            await asyncio.wait_for(self._talk(connection, ran, checks), timeout_s)
        except asyncio.TimeoutError:
            seen = ", ".join(ran.types[-5:]) or "nothing"
            raise WireViolation(f"the run did not end within {timeout_s:g} s; it sent {seen}") from None
        finally:
            connection.abandon()
        return ran

    def _run_agent(self, plugin: CheckedPlugin, runner: str | None) -> dict[str, Any]:
        manifests = [manifest for manifest, _ in plugin.runners.values() if runner in (None, manifest.name)]
        if not manifests:
            raise LookupError(f"the plugin offers no runner {runner or ''}".rstrip())
        told = {"runner_id": manifests[0].id, "runner_name": manifests[0].name, "context": self._context}
        return {"jsonrpc": "2.0", "id": RUN_REQUEST, "method": "run_agent", "params": told}

    async def _talk(self, connection: Connection, ran: Ran, checks: FrameChecks) -> None:
        is_cancelled = False
        open_calls: dict[Any, Request] = {}
        async for batch in connection.outbox.batches():
            for line in batch:
                message = checks.parse(line)
                method = message.get("method")
                if method == "run.result":
                    ran.results.append(checks.result(message))
                elif method == "request.cancel":
                    ran.given_up += [open_calls[one] for one in [message["params"]["request_id"]] if one in open_calls]
                elif method is not None:
                    checks.call(message)
                    open_calls[message["id"]] = Request(method, message["params"])
                    ran.requests.append(open_calls[message["id"]])
                    await self._reply(connection, message)
                else:
                    checks.answer(message)
                    connection.outbox.close()
            if not is_cancelled and self._cancel_when(ran):
                is_cancelled = True
                params = {"run_id": RUN_ID, "reason": "test"}
                connection.receive(encode({"jsonrpc": "2.0", "method": "run.cancel", "params": params}))

    async def _reply(self, connection: Connection, message: dict[str, Any]) -> None:
        answer = self._answers.get(message["method"])
        if answer is None:
            reply: Any = Refuse("unauthorized", f"`{message['method']}` is not granted to this run")
        else:
            reply = answer(message["params"])
            reply = await reply if inspect.isawaitable(reply) else reply
        if isinstance(reply, Refuse):
            data = {"code": reply.code, "message": reply.message, "retryable": reply.retryable}
            error = {"code": -32000, "message": reply.message, "data": {**data, "details": dict(reply.details)}}
            connection.receive(encode({"jsonrpc": "2.0", "id": message["id"], "error": error}))
            return
        reply = reply if isinstance(reply, Reply) else Reply(reply)
        for item in reply.items:
            params = {"request_id": message["id"], "item": item}
            connection.receive(encode({"jsonrpc": "2.0", "method": "stream.item", "params": params}))
        if not reply.never:
            connection.receive(encode({"jsonrpc": "2.0", "id": message["id"], "result": reply.result}))

    def _ask_model(self, method: str, params: Mapping[str, Any]) -> Any:
        return self._models[params["model_id"]].answer(method)

    async def _call_tool(self, params: Mapping[str, Any]) -> Any:
        try:
            result = self._tools[params["tool_name"]](**params["parameters"])
            result = await result if inspect.isawaitable(result) else result
        except Exception as error:
            return {"result": None, "error": {"code": "tool.error", "message": str(error)}}
        return result if isinstance(result, (Reply, Refuse)) else {"result": result}

    def _resource(self, kind: str, told: dict[str, Any]) -> None:
        self._context["resources"][kind].append(told)
