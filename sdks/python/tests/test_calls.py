"""Calls of a run to its host: names, parameters, answers, refusals, deadlines, streams."""

from __future__ import annotations

import asyncio
import base64
import inspect
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import pytest

from greenroom_sdk import (
    Api,
    ApiError,
    DeadlineExceeded,
    HostError,
    InvalidArgument,
    Manifest,
    NotFound,
    PayloadTooLarge,
    Plugin,
    RateLimited,
    Result,
    RunCtx,
    Unauthorized,
    message,
    testing,
)
from greenroom_sdk.wire.connection import sent

VIEW = {
    "artifact_id": "a1",
    "mime_type": "text/plain",
    "size_bytes": 5,
    "sha256": "0" * 64,
    "created_at": "2026-01-01T00:00:00.000Z",
}
ITEM = {"item_id": "i1", "conversation_id": "c1", "seq": 1, "role": "user", "created_at": "2026-01-01T00:00:00.000Z"}
EVENT = {"event_id": "e1", "source": "api", "event_type": "x", "seq": 1, "created_at": "2026-01-01T00:00:00.000Z"}


def ran_with(host: testing.Host, work: Callable[[RunCtx, Api], Awaitable[Any]]) -> tuple[Any, testing.Ran]:
    """The result or exception of `work` inside a run, and the record of the run."""
    outcome: list[Any] = []
    plugin = Plugin("tests", "caller")

    @plugin.runner()
    async def run(ctx: RunCtx, api: Api) -> AsyncIterator[Result]:
        try:
            outcome.append(await work(ctx, api))
        except ApiError as error:
            outcome.append(error)
        yield message("done")

    ran = host.run(plugin)
    assert ran.error is None, ran.error
    return outcome[0], ran


def test_the_names_are_those_of_the_protocol() -> None:
    nobody: Any = None
    api = Api(nobody)
    areas = ("models", "tools", "knowledge", "history", "events", "artifacts", "state", "storage", "platform")
    parameters: dict[str, list[str]] = {}
    for area in areas:
        methods: list[Any] = inspect.getmembers(getattr(api, area), inspect.ismethod)
        parameters |= {f"{area}.{name}": list(inspect.signature(method).parameters) for name, method in methods}
    seed = {
        "models.invoke": ["model_id", "messages", "tools", "extra_args"],
        "models.stream": ["model_id", "messages", "tools", "extra_args"],
        "models.rerank": ["model_id", "query", "documents", "top_k"],
        "tools.get_detail": ["tool_name"],
        "tools.call": ["tool_name", "parameters"],
        "knowledge.retrieve": ["kb_id", "query_text", "top_k", "filters"],
        "history.page": [
            "conversation_id",
            "before_cursor",
            "after_cursor",
            "limit",
            "direction",
            "include_artifacts",
        ],
        "history.search": ["query", "filters", "top_k"],
        "events.get": ["event_id"],
        "events.page": ["before_cursor", "limit"],
        "artifacts.metadata": ["artifact_id"],
        "artifacts.read_range": ["artifact_id", "offset", "length"],
        "artifacts.open_stream": ["artifact_id"],
        "state.get": ["scope", "key"],
        "state.set": ["scope", "key", "value"],
        "state.delete": ["scope", "key"],
        "storage.get": ["area", "key"],
        "storage.set": ["area", "key", "value"],
        "storage.delete": ["area", "key"],
        "storage.list": ["area", "prefix"],
        "platform.request_action": ["action", "target", "payload"],
    }
    for method, names in seed.items():
        assert parameters[method][: len(names)] == names, method


def test_state_is_written_under_conditions() -> None:
    async def work(ctx: RunCtx, api: Api) -> Any:
        first = await api.state.get("actor", "seen")
        version = await api.state.set("actor", "seen", [1, "二"], if_version=first.version)
        with pytest.raises(InvalidArgument) as caught:
            await api.state.set("actor", "seen", 2, if_version=first.version)
        page = await api.state.list("actor", prefix="se")
        gone = [await api.state.delete("actor", "seen"), await api.state.delete("actor", "seen")]
        return first.value, version, caught.value.details, [item.value for item in page.items], gone

    outcome, _ = ran_with(testing.Host().with_memory(), work)
    assert outcome == (None, 1, {"reason": "version_conflict"}, [[1, "二"]], [True, False])


def test_storage_gives_bytes_as_they_went_in() -> None:
    async def work(ctx: RunCtx, api: Api) -> Any:
        await api.storage.set("binding", "checkpoints/latest", b"\x00\xff")
        kept = await api.storage.get("binding", "checkpoints/latest")
        page = await api.storage.list("binding", "checkpoints/")
        return kept, [(item.key, item.size_bytes) for item in page.items], await api.storage.get("plugin", "none")

    outcome, _ = ran_with(testing.Host().with_memory(), work)
    assert outcome == (b"\x00\xff", [("checkpoints/latest", 2)], None)


def test_every_other_method_sends_its_parameters_and_reads_its_answer() -> None:
    page = {"items": [ITEM], "next_cursor": "n", "prev_cursor": None, "has_more": True}
    hit = {**ITEM, "score": 1.0, "snippet": "…"}
    data = base64.b64encode(b"hello").decode()
    part = {"data_base64": data, "offset": 0, "length": 5, "size_bytes": 5, "eof": True}
    host = (
        testing.Host()
        .on("history.page", lambda params: page)
        .on("history.search", lambda params: {"items": [hit]})
        .on("events.get", lambda params: EVENT)
        .on("events.page", lambda params: {"items": [EVENT], "has_more": False})
        .on("artifacts.metadata", lambda params: VIEW)
        .on("artifacts.create", lambda params: VIEW)
        .on("artifacts.read_range", lambda params: part)
        .on("platform.request_action", lambda params: {"status": "done", "action": params["action"]})
        .on("steering.pull", lambda params: {"items": []})
        .on("models.rerank", lambda params: {"results": [{"index": 1, "relevance_score": 0.5}]})
        .on("models.embed", lambda params: {"vectors": [[0.5, 1]]})
        .on("models.count_tokens", lambda params: {"tokens": 7})
        .on("tools.search", lambda params: {"items": [{"tool_name": "add"}]})
        .context(lambda ctx: ctx["resources"]["models"].append({"model_id": "m", "operations": []}))
    )

    async def work(ctx: RunCtx, api: Api) -> Any:
        return [
            (await api.history.page(limit=500)).next_cursor,
            (await api.history.search("茶", filters={"after": "2026-01-01T00:00:00Z", "roles": ["user"]}))[0].snippet,
            (await api.events.get("e1")).seq,
            (await api.events.page(limit=10)).has_more,
            (await api.artifacts.metadata("a1")).size_bytes,
            (await api.artifacts.create(b"hello", name="a.txt")).artifact_id,
            (await api.artifacts.read_range("a1")).data,
            (await api.platform.request_action("message.send", payload={"text": "hi"})).status,
            await api.steering.pull(),
            (await api.models.rerank("m", "q", ["a", "b"]))[0].index,
            await api.models.embed("m", ["a"]),
            await api.models.count_tokens("m", text="a"),
            (await api.tools.search("sum"))[0].tool_name,
            (await ctx.call("events.get", event_id="e2"))["seq"],
        ]

    outcome, ran = ran_with(host, work)
    assert outcome == ["n", "…", 1, False, 5, "a1", b"hello", "done", [], 1, [[0.5, 1.0]], 7, "add", 1]
    asked = {request.method: {**request.params} for request in ran.requests}
    assert asked["history.page"] == {
        "limit": 200,
        "direction": "backward",
        "include_artifacts": False,
        "run_id": "run-1",
    }
    assert asked["history.search"]["filters"] == {"after": 1767225600, "roles": ["user"]}
    assert asked["artifacts.create"] == {"content_base64": "aGVsbG8=", "name": "a.txt", "run_id": "run-1"}


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("unauthorized", Unauthorized),
        ("not_found", NotFound),
        ("invalid_argument", InvalidArgument),
        ("payload_too_large", PayloadTooLarge),
        ("rate_limited", RateLimited),
        ("deadline_exceeded", DeadlineExceeded),
        ("runtime_error", HostError),
    ],
)
def test_a_refusal_is_a_typed_exception(code: str, kind: type[ApiError]) -> None:
    refuse = testing.Refuse(code, "no", retryable=True, details={"reason": "r"})
    error, _ = ran_with(testing.Host().on("events.get", lambda params: refuse), lambda ctx, api: api.events.get("e"))
    assert type(error) is kind
    assert (error.code, error.message, error.retryable, error.details) == (code, "no", True, {"reason": "r"})


def test_what_the_context_excludes_is_refused_without_a_call() -> None:
    async def work(ctx: RunCtx, api: Api) -> Any:
        errors = []
        for attempt in (
            lambda: api.history.page(),
            lambda: api.models.invoke("none", []),
            lambda: api.models.invoke("m", [{"role": "user", "content": "x"}]),
            lambda: api.tools.get_detail("none"),
            lambda: api.knowledge.retrieve("none", "q"),
            lambda: api.storage.get("workspace", "k"),
            lambda: api.state.set("actor", "k", "x" * 300_000),
            lambda: api.state.get("actor", "x" * 300),
            lambda: api.state.get("global", "k"),  # type: ignore[arg-type]
            lambda: api.storage.set("plugin", "../k", b""),
        ):
            try:
                await attempt()
            except ApiError as error:
                errors.append(error.code)
        return errors

    grant = {"plugin": True, "binding": True, "workspace": False}
    host = testing.Host().with_memory().context(lambda ctx: ctx["resources"].update(storage=grant))
    host.context(lambda ctx: ctx["resources"]["models"].append({"model_id": "m", "operations": ["embed"]}))
    outcome, ran = ran_with(host, work)
    assert outcome == [
        "unauthorized",
        "not_found",
        "unauthorized",
        "not_found",
        "not_found",
        "unauthorized",
        "payload_too_large",
        "invalid_argument",
        "invalid_argument",
        "invalid_argument",
    ]
    assert ran.requests == []


def test_a_call_of_a_tool_that_was_not_announced_is_refused_by_the_host() -> None:
    refuse = testing.Refuse("not_found", "there is no such tool")
    host = testing.Host().on("tools.call", lambda params: refuse)
    error, ran = ran_with(host, lambda ctx, api: api.tools.call("none"))
    assert (error.code, error.message) == ("not_found", "there is no such tool")
    assert [request.params["tool_name"] for request in ran.requests] == ["none"]


def test_an_answer_that_is_not_as_expected_is_an_error_of_the_host() -> None:
    host = testing.Host().on("events.get", lambda params: {"seq": "one"})
    error, _ = ran_with(host, lambda ctx, api: api.events.get("e"))
    assert isinstance(error, HostError)
    assert "the answer to `events.get` is not as expected: `created_at`" in error.message


def test_a_call_ends_at_the_deadline_and_is_given_up() -> None:
    def soon(ctx: dict[str, Any]) -> None:
        ctx["runtime"]["metadata"]["remaining_ms"] = 20

    host = testing.Host().on("events.get", lambda params: testing.Reply(never=True)).context(soon)
    error, ran = ran_with(host, lambda ctx, api: api.events.get("e"))
    assert isinstance(error, DeadlineExceeded)
    assert [request.method for request in ran.given_up] == ["events.get"]


def test_without_the_remaining_time_the_deadline_is_read() -> None:
    def hurried(ctx: dict[str, Any]) -> None:
        del ctx["runtime"]["metadata"]["remaining_ms"]
        ctx["runtime"]["deadline_at"] = time.time() + 0.05

    host = testing.Host().on("events.get", lambda params: testing.Reply(never=True)).context(hurried)
    error, _ = ran_with(host, lambda ctx, api: api.events.get("e"))
    assert isinstance(error, DeadlineExceeded)


def test_a_large_artifact_is_uploaded_in_parts() -> None:
    content = bytes(range(256)) * 12_000
    received = bytearray()

    def append(params: Mapping[str, Any]) -> dict[str, Any]:
        assert params["offset"] == len(received)
        received.extend(base64.b64decode(params["data_base64"]))
        return {"size_bytes": len(received)}

    host = (
        testing.Host()
        .on("artifacts.begin", lambda params: {"upload_id": "upl_1", "part_bytes_max": 1_000_000})
        .on("artifacts.append", append)
        .on("artifacts.commit", lambda params: VIEW)
    )

    async def work(ctx: RunCtx, api: Api) -> Any:
        return (await api.artifacts.create(content, name="large.bin")).artifact_id

    outcome, ran = ran_with(host, work)
    assert (outcome, bytes(received)) == ("a1", content)
    methods = [request.method for request in ran.requests]
    assert methods == ["artifacts.begin", *["artifacts.append"] * 4, "artifacts.commit"]
    assert ran.requests[0].params["name"] == "large.bin"
    assert ran.requests[-1].params["size_bytes"] == len(content)


def test_the_clock_stands_still_while_a_person_is_waited_for() -> None:
    async def slowly(params: Any) -> Any:
        await asyncio.sleep(0.3)
        return {"status": "done", "action": params["action"]}

    def soon(ctx: dict[str, Any]) -> None:
        ctx["runtime"]["metadata"]["remaining_ms"] = 150

    async def work(ctx: RunCtx, api: Api) -> Any:
        outcome = await api.platform.request_action("message.send")
        return outcome.status, ctx.remaining is not None and ctx.remaining > 0

    host = testing.Host().on("platform.request_action", slowly).context(soon)
    assert ran_with(host, work)[0] == ("done", True)


def test_a_call_that_nobody_awaits_any_more_is_given_up() -> None:
    async def work(ctx: RunCtx, api: Api) -> Any:
        task = asyncio.ensure_future(api.events.get("e"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        return await asyncio.gather(task, return_exceptions=True)

    host = testing.Host().on("events.get", lambda params: testing.Reply(never=True))
    outcome, ran = ran_with(host, work)
    assert isinstance(outcome[0], asyncio.CancelledError)
    assert len(ran.given_up) == len(ran.requests) == 1


def test_a_call_that_is_left_open_is_given_up_when_the_run_ends() -> None:
    tasks: list[Any] = []

    async def work(ctx: RunCtx, api: Api) -> Any:
        tasks.append(asyncio.ensure_future(api.events.get("e")))
        await asyncio.sleep(0)

    host = testing.Host().on("events.get", lambda params: testing.Reply(never=True))
    _, ran = ran_with(host, work)
    assert [request.method for request in ran.given_up] == ["events.get"]


def test_a_model_is_streamed_and_its_whole_answer_kept() -> None:
    async def work(ctx: RunCtx, api: Api) -> Any:
        stream = await api.models.stream("main", [{"role": "user", "content": ctx.text}])
        items = [item async for item in stream]
        assert stream.response is not None
        return [item.type for item in items], stream.response.text, stream.response.finish_reason

    host = testing.Host().model("main", ["Hello there"])
    kinds, text, reason = ran_with(host, work)[0]
    assert kinds == ["text_delta", "text_delta", "usage", "finish"]
    assert (text, reason) == ("Hello there", "stop")


def test_a_stream_that_is_left_early_is_given_up() -> None:
    async def work(ctx: RunCtx, api: Api) -> Any:
        async with api.models.stream("main", [{"role": "user", "content": "x"}]) as stream:
            async for item in stream:
                return item.type

    item = {"type": "text_delta", "text": "a"}
    host = testing.Host().model("main", ["x"]).on("models.stream", lambda p: testing.Reply(None, [item], never=True))
    outcome, ran = ran_with(host, work)
    assert outcome == "text_delta"
    assert [request.method for request in ran.given_up] == ["models.stream"]


def test_a_stream_that_fails_in_its_middle_gives_its_items_and_then_the_error() -> None:
    seen: list[str] = []

    async def work(ctx: RunCtx, api: Api) -> Any:
        async for item in api.models.stream("main", [{"role": "user", "content": "x"}]):
            seen.append(item.type)

    bad = [{"type": "text_delta", "text": "a"}, {"type": "applause"}]
    host = testing.Host().model("main", ["x"]).on("models.stream", lambda p: testing.Reply({}, bad))
    error, _ = ran_with(host, work)
    assert isinstance(error, HostError)
    assert seen == ["text_delta"]


def test_an_artifact_is_streamed_in_order_and_a_slow_reader_loses_nothing() -> None:
    whole = bytes(range(256)) * 4 * 1024 * 8
    piece = 64 * 1024

    def stream(params: Any) -> testing.Reply:
        places = range(params.get("offset", 0), len(whole), piece)
        items = [{"offset": at, "data_base64": base64.b64encode(whole[at : at + piece]).decode()} for at in places]
        return testing.Reply({"size_bytes": len(whole), "sha256": "0" * 64}, items)

    async def work(ctx: RunCtx, api: Api) -> Any:
        return await api.artifacts.open_stream("a1").read()

    outcome, ran = ran_with(testing.Host().on("artifacts.open_stream", stream), work)
    assert outcome == whole
    # All items came before the first was read: more than the inbox holds, so the rest was asked for again.
    assert len(ran.requests) > 1


def test_an_artifact_with_a_missing_piece_is_an_error() -> None:
    items = [{"offset": 5, "data_base64": ""}]
    host = testing.Host().on(
        "artifacts.open_stream", lambda p: testing.Reply({"size_bytes": 5, "sha256": "0" * 64}, items)
    )
    error, _ = ran_with(host, lambda ctx, api: api.artifacts.open_stream("a1").read())
    assert "a chunk is missing" in error.message


def test_a_call_too_large_for_the_wire_is_refused_here() -> None:
    host = testing.Host().with_memory()
    error, ran = ran_with(host, lambda ctx, api: api.storage.set("plugin", "k", b"x" * 7_000_000))
    assert isinstance(error, PayloadTooLarge)
    assert ran.requests == []


def test_a_static_part_of_the_context_is_read_by_its_reference() -> None:
    block = b'[["files.read","Reads a file",{}]]'
    item = {"offset": 0, "data_base64": base64.b64encode(block).decode()}
    host = testing.Host().on(
        "artifacts.open_stream", lambda p: testing.Reply({"size_bytes": len(block), "sha256": "0" * 64}, [item])
    )
    reference = {"kind": "tools", "hash": "sha256:abc", "artifact_id": "sha256:abc"}
    host._context["runtime"]["static_refs"] = {"tools": reference, "grant": {"kind": "grant", "hash": "sha256:def"}}

    async def work(ctx: RunCtx, api: Api) -> Any:
        return [await api.artifacts.static_part(kind) for kind in ("tools", "grant", "skills")]

    outcome, ran = ran_with(host, work)
    assert outcome == [block, None, None]
    assert [call["artifact_id"] for call in ran.calls("artifacts.open_stream")] == ["sha256:abc"]


def test_a_manifest_asks_for_references_only_if_it_says_so() -> None:
    def sent_context(manifest: Manifest) -> Any:
        return sent(manifest.of("tests", "caller"))["context"]

    silent = sent_context(Manifest("default"))
    assert "wants_static_context_refs" not in silent
    assert silent["owns_compaction"] is True
    for wanted in (True, False):
        spoken = sent_context(Manifest("default", context={"wants_static_context_refs": wanted}))
        assert spoken["wants_static_context_refs"] is wanted
