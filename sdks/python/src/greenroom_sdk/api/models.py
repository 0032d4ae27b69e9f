"""Models: `api.models`, by their names in `ctx.resources.models`; providers and keys stay with the host."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter

from greenroom_sdk import protocol
from greenroom_sdk.api.host_calls import HostCalls, build, read, read_as
from greenroom_sdk.wire.calls import Call
from greenroom_sdk.wire.deadline import Watch

Messages = Sequence[protocol.ModelMessage | Mapping[str, Any]]
Tools = Sequence[protocol.ToolResource | Mapping[str, Any]]

_ITEM: TypeAdapter[Any] = TypeAdapter(protocol.ModelStreamItem)


class ModelsApi:
    def __init__(self, host: HostCalls) -> None:
        self._host = host

    async def invoke(
        self,
        model_id: str,
        messages: Messages,
        tools: Tools | None = None,
        extra_args: Mapping[str, Any] | None = None,
    ) -> protocol.ProviderResponse:
        """The model's complete answer: `.text`, `.tool_calls`, `.segments`, `.metadata`."""
        self._host.check_model(model_id, "invoke")
        return await self._host.request(
            "models.invoke",
            protocol.ModelInvokeParams,
            protocol.ProviderResponse,
            model_id=model_id,
            messages=list(messages),
            tools=_plain(tools),
            extra_args=extra_args,
        )

    def stream(
        self,
        model_id: str,
        messages: Messages,
        tools: Tools | None = None,
        extra_args: Mapping[str, Any] | None = None,
    ) -> ModelStream:
        """Streams the model's answer; iterate with `async for`, with or without `await` before.

        async for item in api.models.stream("main", messages):
            if item.type == "text_delta":
                yield delta(item.text)
        """
        self._host.check_model(model_id, "stream")
        fields = {
            "model_id": model_id,
            "messages": list(messages),
            "tools": _plain(tools),
            "extra_args": extra_args,
        }
        return ModelStream(self._host, build(protocol.ModelInvokeParams, fields))

    async def rerank(
        self, model_id: str, query: str, documents: Sequence[str], top_k: int | None = None
    ) -> list[protocol.RankedDocument]:
        """The documents ranked by relevance to the query, best first."""
        self._host.check_model(model_id, "rerank")
        fields = {"model_id": model_id, "query": query, "documents": list(documents), "top_k": top_k}
        params, answer = protocol.ModelRerankParams, protocol.RerankResult
        return (await self._host.request("models.rerank", params, answer, **fields)).results

    async def embed(self, model_id: str, inputs: Sequence[str]) -> list[list[float]]:
        """One vector per input, in the same order."""
        self._host.check_model(model_id, "embed")
        fields = {"model_id": model_id, "inputs": list(inputs)}
        params, answer = protocol.ModelEmbedParams, protocol.EmbedResult
        return (await self._host.request("models.embed", params, answer, **fields)).vectors

    async def count_tokens(
        self, model_id: str, messages: Messages | None = None, text: str | None = None
    ) -> int:
        """The number of tokens of messages or a text for the model."""
        self._host.check_model(model_id, "invoke")
        fields = {"model_id": model_id, "messages": None if messages is None else list(messages), "text": text}
        params, answer = protocol.CountTokensParams, protocol.TokenCount
        return (await self._host.request("models.count_tokens", params, answer, **fields)).tokens


class ModelStream(AsyncIterator[protocol.ModelStreamItem]):
    """The items of a model's answer; `response` is the complete answer once the stream has ended.

    Left before its end, it is given up when the run ends; `async with` or `aclose()` does so at once.
    """

    def __init__(self, host: HostCalls, params: protocol.ModelInvokeParams) -> None:
        self._host, self._params = host, params
        self._call: Call | None = None
        self._watch: Watch | None = None
        self._is_over = False
        self.response: protocol.ProviderResponse | None = None

    def __await__(self) -> Generator[Any, None, ModelStream]:
        return self._opened().__await__()

    async def __aenter__(self) -> ModelStream:
        return await self._opened()

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def __anext__(self) -> protocol.ModelStreamItem:
        if self._is_over:
            raise StopAsyncIteration
        try:
            await self._opened()
            assert self._call is not None
            item = await self._call.next_item()
            if item is not None:
                read_item: protocol.ModelStreamItem = read_as("models.stream", _ITEM, item[0])
                return read_item
            self.response = read("models.stream", protocol.ProviderResponse, await self._call.answer)
        except BaseException:
            await self.aclose()
            raise
        await self.aclose()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Cancels the call if it has not ended."""
        self._is_over = True
        if self._watch is not None:
            self._watch.cancel()
        if self._call is not None:
            self._call.give_up()

    async def _opened(self) -> ModelStream:
        if self._call is None and not self._is_over:
            self._call, self._watch = await self._host.open("models.stream", self._params.wire())
        return self


def _plain(tools: Tools | None) -> list[Mapping[str, Any]] | None:
    if tools is None:
        return None
    return [tool.wire() if isinstance(tool, protocol.ToolResource) else tool for tool in tools]
