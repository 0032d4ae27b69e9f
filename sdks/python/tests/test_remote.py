"""A remote runner as a process: its environment, and one clear line for each error."""

from __future__ import annotations

from pathlib import Path

import pytest

from processes import WAIT_S, Process

RUNNER = """
from greenroom_sdk import Plugin, message
plugin = Plugin("tests", "far")

@plugin.runner()
async def run(ctx):
    yield message(ctx.text)

if __name__ == "__main__":
    plugin.serve()
"""
EXAMPLE = "write `wss://HOST`, or `ws://127.0.0.1:PORT` on the host's own machine"
BOTH = "set both to connect to a host, or neither to be started by one"
NO_TOKEN = (
    "`GREENROOM_RUNNER_TOKEN` contains a line break or another invalid character; only visible ASCII is allowed"
)


def refused(folder: Path, **variables: str) -> str:
    """The one log line of a process that exits with 1 while its input is open."""
    with Process(folder, RUNNER, whole=True, variables=variables) as process:
        assert process.process.wait(WAIT_S) == 1
        assert process.messages.get(timeout=WAIT_S) is None
        return process.wait_for_log("\n")


@pytest.mark.parametrize(
    "url",
    [
        "ws://127.0.0.1:notaport",
        "ws://127.0.0.1:65536",
        "ws://127.0.0.1:0",
        "ws://[::1",
        "ws://",
        "ftp://host.example",
        "ws://host name",
        "ws://host..example",
    ],
)
def test_an_address_that_is_none_is_told_in_one_line(tmp_path: Path, url: str) -> None:
    told = refused(tmp_path, GREENROOM_URL=url, GREENROOM_RUNNER_TOKEN="secret")
    assert told == f"greenroom-sdk: error: `{url}` is not the address of a host: {EXAMPLE}\n"


@pytest.mark.parametrize("url", ["host.example", "127.0.0.1:8700", "wss://host.example?token=hunter2", "hunter2"])
def test_what_may_be_a_token_is_not_repeated(tmp_path: Path, url: str) -> None:
    told = refused(tmp_path, GREENROOM_URL=url, GREENROOM_RUNNER_TOKEN="secret")
    assert told == f"greenroom-sdk: error: `GREENROOM_URL` is not the address of a host: {EXAMPLE}\n"


def test_a_password_in_the_address_is_refused_and_not_repeated(tmp_path: Path) -> None:
    told = refused(tmp_path, GREENROOM_URL="ws://me:hunter2@127.0.0.1:notaport", GREENROOM_RUNNER_TOKEN="secret")
    name = "`GREENROOM_URL` contains a user or a password; the token goes into `GREENROOM_RUNNER_TOKEN`"
    assert told == f"greenroom-sdk: error: {name}\n"


@pytest.mark.parametrize("token", ["hunter2\n", "hunter2\r\nX-More: 1", "hünter2", "hunter2\x7f", "\ud800hunter2"])
def test_a_token_that_no_host_can_be_told_is_refused_and_not_repeated(tmp_path: Path, token: str) -> None:
    url = "ws://127.0.0.1:1"
    variables = {"GREENROOM_URL": url, "GREENROOM_RUNNER_TOKEN": token.replace("\ud800", "\udcff")}
    assert refused(tmp_path, **variables) == f"greenroom-sdk: error: {NO_TOKEN}\n"


def test_an_address_without_a_token_is_refused_instead_of_waiting_on_standard_input(tmp_path: Path) -> None:
    line = f"greenroom-sdk: error: `GREENROOM_URL` is set but `GREENROOM_RUNNER_TOKEN` is not: {BOTH}\n"
    assert refused(tmp_path, GREENROOM_URL="ws://127.0.0.1:1") == line
    assert refused(tmp_path, GREENROOM_URL="ws://127.0.0.1:1", GREENROOM_RUNNER_TOKEN="") == line


def test_a_token_without_an_address_is_refused_instead_of_waiting_on_standard_input(tmp_path: Path) -> None:
    line = f"greenroom-sdk: error: `GREENROOM_RUNNER_TOKEN` is set but `GREENROOM_URL` is not: {BOTH}\n"
    assert refused(tmp_path, GREENROOM_RUNNER_TOKEN="hunter2") == line
