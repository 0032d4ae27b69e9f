"""my-runner, spoken to as a host does."""

from __future__ import annotations

import sys
from pathlib import Path

from greenroom_sdk import testing

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from runner import plugin  # noqa: E402


def test_it_streams_its_answer_and_then_gives_all_of_it() -> None:
    ran = testing.run(plugin, "hello")
    assert ran.text == "You said: hello"
    assert ran.streamed == ran.text
    assert ran.is_completed
