"""A test host for runners: one run over the real wire, in memory.

    def test_it_answers():
        ran = testing.run(plugin, "hello")
        assert ran.text == "You said: hello"

`Host` also answers the run's calls: models, tools, knowledge, state and storage, or any method with `on`.
Both are plain functions, so no plugin for pytest is needed; inside of an event loop use `await host.run_async(…)`.

Invariant: the runner is spoken to exactly as a host does, and every frame it sends is checked: a frame that no host
would take raises `WireViolation`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from greenroom_sdk.plugin import Plugin
from greenroom_sdk.protocol import CallToolResult
from greenroom_sdk.testing.frames import WireViolation
from greenroom_sdk.testing.host import Host
from greenroom_sdk.testing.ran import Ran, Refuse, Reply, Request
from greenroom_sdk.testing.tool import call_tool, call_tool_async

__all__ = [
    "CallToolResult",
    "Host",
    "Ran",
    "Refuse",
    "Reply",
    "Request",
    "WireViolation",
    "call_tool",
    "call_tool_async",
    "run",
]


def run(plugin: Plugin, text: str = "hello", config: Mapping[str, Any] | None = None) -> Ran:
    """Runs the plugin's first runner once; a run that calls the host is tested with `Host`."""
    return Host(config=config).run(plugin, text)
