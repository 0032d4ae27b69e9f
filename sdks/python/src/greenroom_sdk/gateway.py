"""The gateways of the host, for programs that a runner starts: clients of MCP and of models.

Invariant: the token is the run's: it is valid while this attempt runs, and widens nothing.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from greenroom_sdk import protocol


@dataclass(frozen=True)
class Gateway:
    """Addresses and token of one run; its `repr` does not show the token."""

    run_id: str
    host_url: str
    token: str = field(repr=False)
    """The secret for the header that the client has for keys. Keep it out of arguments and logs."""

    @property
    def mcp_url(self) -> str:
        """The tools of the run, over streamable HTTP."""
        return f"{self.host_url}/mcp/runs/{self.run_id}"

    @property
    def openai_url(self) -> str:
        """The base URL for clients of OpenAI: `/chat/completions` and `/responses` are below it."""
        return self._models("openai/v1")

    @property
    def anthropic_url(self) -> str:
        """The base URL for clients of Anthropic: `/v1/messages` is below it."""
        return self._models("anthropic")

    @property
    def gemini_url(self) -> str:
        """The base URL for clients of Gemini: `/v1beta/models/…` is below it."""
        return self._models("gemini")

    def _models(self, wire: str) -> str:
        return f"{self.host_url}/models/runs/{self.run_id}/{wire}"


def gateway_of(context: protocol.AgentRunContext) -> Gateway | None:
    """The gateways of a run; `None` if the host gives no token to runs.

    A runner on another machine (`GREENROOM_URL`) has an address of its own for the host.
    """
    metadata = context.runtime.metadata
    url, token = _remote_url() or metadata.get("host_url"), metadata.get("run_token")
    if not isinstance(url, str) or not isinstance(token, str):
        return None
    return Gateway(context.run_id, url.rstrip("/"), token)


def _remote_url() -> str | None:
    url = os.environ.get("GREENROOM_URL")
    if not url:
        return None
    return "http" + url.removeprefix("ws") if url.startswith("ws") else url
