"""Write a Greenroom runner in Python.

from greenroom_sdk import Plugin, RunCtx, delta, message

plugin = Plugin("local", "parrot")

@plugin.runner("default", label="Parrot")
async def parrot(ctx: RunCtx):
    yield delta("You said: ")
    yield delta(ctx.text)
    yield message(f"You said: {ctx.text}")

if __name__ == "__main__":
    plugin.serve()

Invariant: this package uses the public wire protocol only; whatever a run does, the other runs of the process
continue.
"""

from __future__ import annotations

from greenroom_sdk.api import Api, ArtifactBytes, ArtifactStream, ModelStream
from greenroom_sdk.context import RunCtx
from greenroom_sdk.errors import (
    ApiError,
    DeadlineExceeded,
    GreenroomError,
    HostError,
    InvalidArgument,
    InvalidPlugin,
    NotFound,
    PayloadTooLarge,
    RateLimited,
    RunFailure,
    ToolError,
    Unauthorized,
)
from greenroom_sdk.gateway import Gateway
from greenroom_sdk.plugin import Manifest, Plugin, Runner
from greenroom_sdk.protocol import ModelMessage
from greenroom_sdk.results import (
    Result,
    action,
    artifact,
    client_state,
    client_state_patch,
    completed,
    delta,
    failed,
    message,
    other,
    reasoning,
    state,
    step_finished,
    step_started,
    tool_completed,
    tool_delta,
    tool_started,
)
from greenroom_sdk.tool import ToolCtx, ToolOutput

__version__ = "0.1.0"

__all__ = [
    "Api",
    "ApiError",
    "ArtifactBytes",
    "ArtifactStream",
    "DeadlineExceeded",
    "Gateway",
    "GreenroomError",
    "HostError",
    "InvalidArgument",
    "InvalidPlugin",
    "Manifest",
    "ModelMessage",
    "ModelStream",
    "NotFound",
    "PayloadTooLarge",
    "Plugin",
    "RateLimited",
    "Result",
    "RunCtx",
    "RunFailure",
    "Runner",
    "ToolCtx",
    "ToolError",
    "ToolOutput",
    "Unauthorized",
    "action",
    "artifact",
    "client_state",
    "client_state_patch",
    "completed",
    "delta",
    "failed",
    "message",
    "other",
    "reasoning",
    "state",
    "step_finished",
    "step_started",
    "tool_completed",
    "tool_delta",
    "tool_started",
]
