"""Artifacts: `api.artifacts`. Content is returned as bytes, after the host's answer was checked."""

from __future__ import annotations

import base64
import binascii
from collections.abc import AsyncIterator, Generator, Mapping
from dataclasses import dataclass
from typing import Any

from greenroom_sdk import protocol
from greenroom_sdk.api.host_calls import HostCalls, build, read
from greenroom_sdk.errors import HostError
from greenroom_sdk.wire.calls import Call, Overflowed
from greenroom_sdk.wire.deadline import Watch

ONE_CALL_BYTES_MAX = 2 << 20
"""Bytes of an artifact that is created with one call."""
PART_BYTES_MAX = 1 << 20
"""Largest part of an upload, even if the host would take more."""


@dataclass(frozen=True)
class ArtifactBytes:
    """A part of an artifact."""

    data: bytes
    offset: int
    size_bytes: int
    """Bytes of the whole artifact."""
    eof: bool
    """Whether this is the last part."""


class ArtifactsApi:
    def __init__(self, host: HostCalls) -> None:
        self._host = host

    async def metadata(self, artifact_id: str) -> protocol.ArtifactView:
        """The metadata of an artifact."""
        params, answer = protocol.ArtifactIdParams, protocol.ArtifactView
        return await self._host.request("artifacts.metadata", params, answer, artifact_id=artifact_id)

    async def read_range(self, artifact_id: str, offset: int = 0, length: int = 65536) -> ArtifactBytes:
        """Up to `length` bytes from `offset`; the host may return fewer."""
        method, params, answer = "artifacts.read_range", protocol.ReadRangeParams, protocol.ArtifactRange
        fields = {"artifact_id": artifact_id, "offset": offset, "length": length}
        part = await self._host.request(method, params, answer, **fields)
        return ArtifactBytes(decoded(method, part.data_base64), part.offset, part.size_bytes, part.eof)

    def open_stream(self, artifact_id: str, offset: int = 0) -> ArtifactStream:
        """The artifact in chunks; iterate with `async for`, with or without `await` before."""
        self._host.check_available("artifacts.open_stream")
        fields = {"artifact_id": artifact_id, "offset": offset}
        return ArtifactStream(self._host, build(protocol.OpenStreamParams, fields))

    async def static_part(self, kind: str) -> bytes | None:
        """The content of a static part of the run's context, such as `tools` or `instructions`.

        None if the run has no such part, or may not read artifacts. `ctx.runtime.static_refs[kind].hash` is the same
        for the same content, so a runner can keep what it made of it.
        """
        reference = self._host.context.runtime.static_refs.get(kind)
        if reference is None or reference.artifact_id is None:
            return None
        return await self.open_stream(reference.artifact_id).read()

    async def create(
        self,
        content: bytes,
        *,
        name: str | None = None,
        mime_type: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expires_in_s: int | None = None,
    ) -> protocol.ArtifactView:
        """Stores bytes as an artifact of the run's conversation; many bytes are uploaded in parts."""
        if len(content) > ONE_CALL_BYTES_MAX:
            upload = await self.upload(
                name=name, mime_type=mime_type, metadata=metadata, expires_in_s=expires_in_s
            )
            await upload.append(content)
            return await upload.commit()
        return await self._host.request(
            "artifacts.create",
            protocol.ArtifactCreateParams,
            protocol.ArtifactView,
            content_base64=base64.b64encode(content).decode("ascii"),
            name=name,
            mime_type=mime_type,
            metadata=metadata,
            expires_in_s=expires_in_s,
        )


    async def upload(
        self,
        *,
        name: str | None = None,
        mime_type: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expires_in_s: int | None = None,
    ) -> Upload:
        """Begins an artifact that is written in parts; nothing is stored before its `commit`."""
        params, answer = protocol.ArtifactBeginParams, protocol.ArtifactUpload
        fields = {"name": name, "mime_type": mime_type, "metadata": metadata, "expires_in_s": expires_in_s}
        return Upload(self._host, await self._host.request("artifacts.begin", params, answer, **fields))


class Upload:
    """An open upload; without a commit it stores nothing."""

    def __init__(self, host: HostCalls, begun: protocol.ArtifactUpload) -> None:
        self._host, self._upload_id = host, begun.upload_id
        self._part_bytes_max = max(1, min(begun.part_bytes_max, PART_BYTES_MAX))
        self.size_bytes = 0
        """Bytes so far."""

    async def append(self, content: bytes) -> None:
        """Adds bytes; any number of them."""
        for start in range(0, len(content), self._part_bytes_max):
            part = content[start : start + self._part_bytes_max]
            appended = await self._host.request(
                "artifacts.append",
                protocol.ArtifactAppendParams,
                protocol.ArtifactAppended,
                upload_id=self._upload_id,
                offset=self.size_bytes,
                data_base64=base64.b64encode(part).decode("ascii"),
            )
            self.size_bytes = appended.size_bytes

    async def commit(self) -> protocol.ArtifactView:
        """Stores the artifact."""
        params, answer = protocol.ArtifactCommitParams, protocol.ArtifactView
        fields = {"upload_id": self._upload_id, "size_bytes": self.size_bytes}
        return await self._host.request("artifacts.commit", params, answer, **fields)


class ArtifactStream(AsyncIterator[bytes]):
    """The bytes of an artifact in order.

    Chunks that arrive faster than they are read are requested again: a slow reader costs time, not memory.
    """

    def __init__(self, host: HostCalls, params: protocol.OpenStreamParams) -> None:
        self._host, self._artifact_id = host, params.artifact_id
        self.offset = params.offset
        """Offset of the next chunk."""
        self._call: Call | None = None
        self._watch: Watch | None = None
        self._is_over = False

    def __await__(self) -> Generator[Any, None, ArtifactStream]:
        return self._opened().__await__()

    async def __aenter__(self) -> ArtifactStream:
        return await self._opened()

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def __anext__(self) -> bytes:
        if self._is_over:
            raise StopAsyncIteration
        try:
            chunk = await self._next_chunk()
        except BaseException:
            await self.aclose()
            raise
        if chunk is None:
            await self.aclose()
            raise StopAsyncIteration
        return chunk

    async def read(self) -> bytes:
        """The remaining bytes."""
        return b"".join([chunk async for chunk in self])

    async def aclose(self) -> None:
        """Cancels the call if it has not ended."""
        self._is_over = True
        self._leave()

    async def _next_chunk(self) -> bytes | None:
        while True:
            await self._opened()
            assert self._call is not None
            item = await self._call.next_item()
            if item is not None:
                return self._taken(item[0])
            try:
                answer = await self._call.answer
            except Overflowed:
                self._leave()
                continue
            end = read("artifacts.open_stream", protocol.ArtifactStreamEnd, answer)
            if self.offset < end.size_bytes:
                raise HostError("the answer to `artifacts.open_stream` is not as expected: it ended early")
            return None

    def _taken(self, value: Any) -> bytes:
        item = read("artifacts.open_stream", protocol.ArtifactStreamItem, value)
        if item.offset != self.offset:
            raise HostError("the answer to `artifacts.open_stream` is not as expected: a chunk is missing")
        chunk = decoded("artifacts.open_stream", item.data_base64)
        self.offset += len(chunk)
        return chunk

    async def _opened(self) -> ArtifactStream:
        if self._call is None and not self._is_over:
            params = {"artifact_id": self._artifact_id, "offset": self.offset}
            self._call, self._watch = await self._host.open("artifacts.open_stream", params)
        return self

    def _leave(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
        if self._call is not None:
            self._call.give_up()
        self._call = self._watch = None


def decoded(method: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise HostError(f"the answer to `{method}` is not as expected: its bytes are not base64") from None
