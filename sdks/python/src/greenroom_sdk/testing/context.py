"""A run context as a host would build it for a message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def context(run_id: str, text: str, config: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "trigger": {"type": "message.received", "source": "api"},
        "event": {"event_id": f"event-of-{run_id}", "event_type": "message.received", "source": "api"},
        "conversation": {"conversation_id": "conversation-1", "workspace_id": "default"},
        "actor": {"actor_type": "user", "actor_id": "user-1"},
        "input": {"text": text, "contents": [{"type": "text", "text": text}]},
        "delivery": {"surface": "api", "supports_streaming": True},
        "resources": {"models": [], "tools": [], "knowledge_bases": [], "storage": {}},
        "context": {
            "conversation_id": "conversation-1",
            "inline_policy": {"mode": "current_event", "delivered_count": 1},
            "available_apis": {},
        },
        "state": {},
        "runtime": {
            "host": "greenroom",
            "protocol_version": "1",
            "trace_id": f"trace-of-{run_id}",
            "metadata": {"remaining_ms": 60_000},
        },
        "config": dict(config),
        "metadata": {"attempt": 1},
    }
