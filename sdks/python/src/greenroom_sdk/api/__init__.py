"""What a run may ask its host for, named as in the protocol: `api.models`, `api.tools`, `api.state`, …

Invariant: nothing is kept between calls; what `ctx` excludes is refused here already, and the host checks again.
"""

from __future__ import annotations

from greenroom_sdk.api.artifacts import ArtifactBytes, ArtifactsApi, ArtifactStream
from greenroom_sdk.api.asking import Asking
from greenroom_sdk.api.events import EventsApi
from greenroom_sdk.api.history import HistoryApi
from greenroom_sdk.api.knowledge import KnowledgeApi
from greenroom_sdk.api.models import ModelsApi, ModelStream
from greenroom_sdk.api.platform import PlatformApi
from greenroom_sdk.api.state import StateApi
from greenroom_sdk.api.steering import SteeringApi
from greenroom_sdk.api.storage import StorageApi
from greenroom_sdk.api.tools import ToolsApi

__all__ = ["Api", "ArtifactBytes", "ArtifactStream", "Asking", "ModelStream"]


class Api:
    """The host, as one run sees it."""

    def __init__(self, asking: Asking) -> None:
        self.models = ModelsApi(asking)
        self.tools = ToolsApi(asking)
        self.knowledge = KnowledgeApi(asking)
        self.history = HistoryApi(asking)
        self.events = EventsApi(asking)
        self.artifacts = ArtifactsApi(asking)
        self.state = StateApi(asking)
        self.storage = StorageApi(asking)
        self.platform = PlatformApi(asking)
        self.steering = SteeringApi(asking)
