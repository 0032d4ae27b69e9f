"""`ctx.gateway`: addresses and token for programs that a runner starts."""

import pytest

from greenroom_sdk import protocol
from greenroom_sdk.gateway import gateway_of
from greenroom_sdk.testing.context import context


def run_context(**metadata: str) -> protocol.AgentRunContext:
    raw = context("run_1", "hi", {})
    raw["runtime"]["metadata"] = metadata
    return protocol.AgentRunContext.model_validate(raw)


def test_addresses_and_token_are_those_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GREENROOM_URL", raising=False)
    gateway = gateway_of(run_context(run_token="grt_1", host_url="http://127.0.0.1:8700/"))
    assert gateway is not None
    assert gateway.mcp_url == "http://127.0.0.1:8700/mcp/runs/run_1"
    assert gateway.openai_url == "http://127.0.0.1:8700/models/runs/run_1/openai/v1"
    assert gateway.anthropic_url == "http://127.0.0.1:8700/models/runs/run_1/anthropic"
    assert gateway.gemini_url == "http://127.0.0.1:8700/models/runs/run_1/gemini"
    assert gateway.token == "grt_1"
    assert "grt_1" not in repr(gateway)


def test_a_remote_runner_uses_the_address_that_it_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GREENROOM_URL", "wss://host.example/a")
    gateway = gateway_of(run_context(run_token="grt_1", host_url="http://127.0.0.1:8700"))
    assert gateway is not None
    assert gateway.mcp_url == "https://host.example/a/mcp/runs/run_1"


def test_without_a_token_there_is_no_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GREENROOM_URL", raising=False)
    assert gateway_of(run_context(host_url="http://127.0.0.1:8700")) is None
    assert gateway_of(run_context(run_token="grt_1")) is None
