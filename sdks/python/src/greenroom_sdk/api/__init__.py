"""The host's methods for a run, named as in the protocol: `api.models`, `api.tools`, `api.state`, …

Invariant: nothing is cached between calls; what `ctx` excludes is refused here, and the host checks again.
"""

from __future__ import annotations

from greenroom_sdk.api.artifacts import ArtifactBytes, ArtifactsApi, ArtifactStream
from greenroom_sdk.api.events import EventsApi
from greenroom_sdk.api.harness import HarnessApi
from greenroom_sdk.api.history import HistoryApi
from greenroom_sdk.api.host_calls import HostCalls
from greenroom_sdk.api.knowledge import KnowledgeApi
from greenroom_sdk.api.models import ModelsApi, ModelStream
from greenroom_sdk.api.platform import PlatformApi
from greenroom_sdk.api.state import StateApi
from greenroom_sdk.api.steering import SteeringApi
from greenroom_sdk.api.storage import StorageApi
from greenroom_sdk.api.tools import ToolsApi

__all__ = ["Api", "ArtifactBytes", "ArtifactStream", "HostCalls", "ModelStream"]


class Api:
    """The host's methods, for one run."""

    def __init__(self, host: HostCalls) -> None:
        self.models = ModelsApi(host)
        self.tools = ToolsApi(host)
        self.knowledge = KnowledgeApi(host)
        self.history = HistoryApi(host)
        self.events = EventsApi(host)
        self.artifacts = ArtifactsApi(host)
        self.state = StateApi(host)
        self.storage = StorageApi(host)
        self.platform = PlatformApi(host)
        self.steering = SteeringApi(host)
        self.harness = HarnessApi(host)
