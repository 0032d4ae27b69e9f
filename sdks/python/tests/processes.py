"""A runner as a child process, driven over its pipes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Mapping
from pathlib import Path
from queue import Empty, Queue
from typing import Any

from greenroom_sdk.testing.context import context

WAIT_S = 20

HEAD = """
import asyncio, sys, time
from greenroom_sdk import *
plugin = Plugin("tests", "subject")
"""
TAIL = """
if __name__ == "__main__":
    plugin.serve()
"""


class Process:
    """Returns its messages in order; its stderr is recorded."""

    def __init__(
        self,
        folder: Path,
        source: str,
        *command: str,
        whole: bool = False,
        reads: bool = True,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        path = folder / "subject.py"
        path.write_text(textwrap.dedent(source) if whole else HEAD + textwrap.dedent(source) + TAIL, "utf-8")
        ours = ("GREENROOM_", "PYTHON")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        self.process = subprocess.Popen(
            [sys.executable, *command, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**environment, **(variables or {})},
        )
        self.messages: Queue[dict[str, Any] | bytes | None] = Queue()
        self._log: list[str] = []
        self._said = threading.Condition()
        for reader in (self._read_messages, self._read_log) if reads else (self._read_log,):
            threading.Thread(target=reader, daemon=True).start()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def send(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def say(self, **message: Any) -> None:
        self.send(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def start_run(self, run_id: str, text: str = "hello", **config: Any) -> None:
        told = {"runner_id": "plugin:tests/subject/default", "runner_name": "default"}
        self.say(id=run_id, method="run_agent", params={**told, "context": context(run_id, text, config)})

    def next(self) -> dict[str, Any]:
        try:
            message = self.messages.get(timeout=WAIT_S)
        except Empty:
            raise AssertionError(f"the process said nothing; its log: {self.log}") from None
        assert message is not None, f"the process closed its output; its log: {self.log}"
        assert isinstance(message, dict), f"not a message: {message!r}"
        return message

    def results(self, *run_ids: str) -> dict[str, list[dict[str, Any]]]:
        """The results of these runs, until each is answered."""
        found: dict[str, list[dict[str, Any]]] = {run_id: [] for run_id in run_ids}
        waiting = set(run_ids)
        while waiting:
            message = self.next()
            if message.get("method") == "run.result":
                found[message["params"]["run_id"]].append(message["params"])
            elif message.get("id") in waiting:
                assert "result" in message, message
                waiting.remove(message["id"])
        return found

    def run(self, run_id: str = "r1", text: str = "hello", **config: Any) -> list[dict[str, Any]]:
        self.start_run(run_id, text, **config)
        return self.results(run_id)[run_id]

    @property
    def log(self) -> str:
        return "".join(self._log)

    def wait_for_log(self, part: str) -> str:
        with self._said:
            assert self._said.wait_for(lambda: part in self.log, WAIT_S), f"`{part}` is not in: {self.log}"
        return self.log

    def ended(self) -> int:
        """The exit code, once the input is closed."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(WAIT_S)

    def _read_messages(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            try:
                self.messages.put(json.loads(line))
            except ValueError:
                self.messages.put(line)
        self.messages.put(None)

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._said:
                self._log.append(line.decode("utf-8", "replace"))
                self._said.notify_all()
