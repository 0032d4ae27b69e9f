"""The structures that cross the wire, one class per schema in `docs/schema`.

Invariant: everything here is generated, or says what a schema cannot; nothing here speaks to a host.
"""

from __future__ import annotations

from greenroom_sdk.protocol import _generated
from greenroom_sdk.protocol._base import Wire as Wire
from greenroom_sdk.protocol._generated import *  # noqa: F403

PROTOCOL_VERSION = "1"
"""The major version that is spoken here."""

PAYLOADS: dict[str, type[Wire]] = {
    "message.delta": _generated.MessageDelta,
    "message.completed": _generated.MessageCompleted,
    "tool.call.started": _generated.ToolCallStarted,
    "tool.call.completed": _generated.ToolCallCompleted,
    "artifact.created": _generated.ArtifactCreated,
    "state.updated": _generated.StateUpdated,
    "action.requested": _generated.ActionRequested,
    "run.completed": _generated.RunCompleted,
    "run.failed": _generated.RunFailed,
}
"""The structure of a result's `data`, by its `type`."""

PARAMS: dict[str, type[Wire]] = {
    "models.invoke": _generated.ModelInvokeParams,
    "models.stream": _generated.ModelInvokeParams,
    "models.rerank": _generated.ModelRerankParams,
    "models.embed": _generated.ModelEmbedParams,
    "models.count_tokens": _generated.CountTokensParams,
    "tools.get_detail": _generated.ToolDetailParams,
    "tools.search": _generated.ToolSearchParams,
    "tools.call": _generated.ToolCallParams,
    "knowledge.list": _generated.KnowledgeListParams,
    "knowledge.retrieve": _generated.KnowledgeRetrieveParams,
    "history.page": _generated.HistoryPageParams,
    "history.search": _generated.HistorySearchParams,
    "events.get": _generated.EventGetParams,
    "events.page": _generated.EventPageParams,
    "artifacts.metadata": _generated.ArtifactIdParams,
    "artifacts.read_range": _generated.ReadRangeParams,
    "artifacts.open_stream": _generated.OpenStreamParams,
    "artifacts.create": _generated.ArtifactCreateParams,
    "artifacts.begin": _generated.ArtifactBeginParams,
    "artifacts.append": _generated.ArtifactAppendParams,
    "artifacts.commit": _generated.ArtifactCommitParams,
    "state.get": _generated.StateGetParams,
    "state.set": _generated.StateSetParams,
    "state.delete": _generated.StateDeleteParams,
    "state.list": _generated.StateListParams,
    "storage.get": _generated.StorageGetParams,
    "storage.set": _generated.StorageSetParams,
    "storage.delete": _generated.StorageDeleteParams,
    "storage.list": _generated.StorageListParams,
    "platform.request_action": _generated.RequestActionParams,
    "steering.pull": _generated.SteeringPullParams,
    "harness.permission": _generated.HarnessPermissionParams,
}
"""The structure of a call's parameters, by its method."""
