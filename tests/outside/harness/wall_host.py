"""A host with real harnesses and a scripted model, for the tests of the wall."""

import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
CANARY = "sk-canary-0123456789abcdefghijklmnop"
PATIENCE = 180
GOOSE = "@aaif/goose-binary-linux-x64/bin/goose"
ALWAYS = "{ read = 'always', search = 'always', edit = 'always', execute = 'always', other = 'always' }"


def descendants(pid: int) -> list[int]:
    """All processes below one, itself included."""
    children: dict[int, list[int]] = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            parent = int(stat.rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry.name))
    found, open_ = [], [pid]
    while open_:
        one = open_.pop()
        found.append(one)
        open_.extend(children.get(one, []))
    return found


def environ(pid: int) -> bytes:
    try:
        return pathlib.Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def alive(pid: int) -> bool:
    try:
        return ") Z " not in pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


class Host:
    """Serves `greenroom.toml` of a temporary folder; `model` is the address of the scripted model."""

    def __init__(self, program: str, script: pathlib.Path, configuration) -> None:
        self.program = program
        self.temporary = tempfile.TemporaryDirectory(prefix="greenroom-wall-")
        self.folder = pathlib.Path(self.temporary.name).resolve()
        self.requests = self.folder / "requests.jsonl"
        words = [program, "dev", "model-server", "--script", str(script), "--log", str(self.requests)]
        self.server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        self.model = re.search(r"127\.0\.0\.1:\d+", self.server.stdout.readline()).group()
        (self.folder / "key").write_text(CANARY)
        (self.folder / "greenroom.toml").write_text(configuration(self))
        self.process: subprocess.Popen | None = None

    @property
    def data(self) -> pathlib.Path:
        return self.folder / "data"

    def start(self) -> None:
        words = [self.program, "serve", "--config", "greenroom.toml", "--data", "data", "--listen", "127.0.0.1:0"]
        with open(self.folder / "log", "a") as log:
            self.process = subprocess.Popen(words, cwd=self.folder, stdout=log, stderr=log)
        self.wait("start of the host", self.is_up)

    def is_up(self) -> bool:
        assert self.process.poll() is None, self.log()
        try:
            place = json.loads((self.data / "host.json").read_text())
            if place["pid"] != self.process.pid:
                return False
            self.url = place["url"]
            self.token = (self.data / "admin-token").read_text().strip()
            self.call("GET", "/readyz")
            return True
        except (OSError, ValueError, urllib.error.URLError):
            return False

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def close(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)
        self.server.kill()
        self.server.wait()
        self.temporary.cleanup()

    def call(self, method: str, path: str, body: object = None) -> dict:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read()
        return json.loads(text) if text.startswith((b"{", b"[")) else {}

    def send(self, agent: str, conversation: str, text: str, **more: object) -> str:
        event = {"event_type": "message.received", "agent": agent, "conversation_id": conversation,
                 "actor": {"actor_type": "user", "actor_id": "u1"}, "input": {"text": text}, **more}
        return self.call("POST", "/v1/events", event)["run_id"]

    def wait(self, what: str, found, patience: float = PATIENCE):
        end = time.monotonic() + patience
        while time.monotonic() < end:
            value = found()
            if value:
                return value
            time.sleep(0.02)
        raise AssertionError(f"no {what} within {patience} s")

    def ended(self, run_id: str) -> dict:
        def over() -> dict | None:
            run = self.call("GET", f"/v1/runs/{run_id}")
            return run if run["status"] not in ("queued", "running") else None
        return self.wait("end of the run", over)

    def results(self, run_id: str) -> list[dict]:
        return self.call("GET", f"/v1/runs/{run_id}/results?limit=200")["items"]

    def text(self, run_id: str) -> str:
        completed = [r for r in self.results(run_id) if r["type"] == "message.completed"]
        return "\n".join(r["data"]["message"]["content"] for r in completed)

    def say(self, agent: str, conversation: str, text: str) -> str:
        """The answer to a message."""
        run_id = self.send(agent, conversation, text)
        run = self.ended(run_id)
        assert run["status"] == "completed", (text[:200], run["status"], run.get("error"))
        return self.text(run_id)

    def root(self, runner: str, conversation: str) -> pathlib.Path:
        """The folder of a conversation."""
        for record in (self.data / "harness" / runner / "workspaces").glob("*/workspace.json"):
            if json.loads(record.read_text())["owner"]["conversation_id"] == conversation:
                return record.parent
        raise AssertionError(f"no workspace of {conversation}")


def agent(runner: str, goose: pathlib.Path, config: str = 'workspace = "conversation"', grant: str = "") -> str:
    return (f'[runners.{runner}]\nwire = "acp"\nprofile = "goose"\ncommand = ["{goose}", "acp"]\nnetwork = false\n'
            f'sessions = {{ open = 32 }}\n'
            f'[agents.{runner}]\nrunner = "plugin:harness/{runner}/default"\nevents = []\nconfig = {{ {config} }}\n'
            f'[agents.{runner}.grant]\nmodels = ["brain"]\nharness = {ALWAYS}\n{grant}\n')


def brain(host: Host) -> str:
    return ('[limits]\ncancel_grace_s = 2\n'
            f'[models.brain]\nprovider = "openai"\nmodel = "gpt-4.1"\nbase_url = "http://{host.model}/v1"\n'
            'api_key = { file = "key" }\nallow_private = true\n')
