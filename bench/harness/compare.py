#!/usr/bin/env python3
"""Turns of goose through the host beside turns of goose driven by a bare client, in turns; see bench/HARNESSES.md.

compare.py PROGRAM MODULES [TURNS [--without-wall]]   PROGRAM is a release build; MODULES the `node_modules` with goose.
"""

import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/outside/harness"))

from wall_host import GOOSE, HERE, Host, agent, brain, descendants  # noqa: E402

PROGRAM, MODULES = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
TURNS = int(sys.argv[3]) if len(sys.argv) > 3 else 60
SESSIONS = 20
# Versions before the wall have no such setting.
WALL = "--without-wall" not in sys.argv


class Bare:
    """The smallest client: one session, one prompt at a time."""

    def __init__(self, host: Host) -> None:
        home = host.folder / "bare"
        home.mkdir()
        env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": str(home), "GOOSE_MODE": "approve", "GOOSE_DISABLE_KEYRING": "1",
               "GOOSE_PROVIDER": "openai", "OPENAI_HOST": f"http://{host.model}", "OPENAI_API_KEY": "none",
               "OPENAI_BASE_PATH": "v1/chat/completions", "GOOSE_MODEL": "brain"}
        self.process = subprocess.Popen([str(MODULES / GOOSE), "acp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, env=env, cwd=home, text=True)
        self.number = 0
        capabilities = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
        self.request("initialize", {"protocolVersion": 1, "clientCapabilities": capabilities})
        self.session = self.request("session/new", {"cwd": str(home), "mcpServers": []})["sessionId"]

    def request(self, method: str, params: dict) -> dict:
        self.number += 1
        message = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()
        while True:
            answer = json.loads(self.process.stdout.readline())
            if answer.get("id") == self.number and "method" not in answer:
                assert "error" not in answer, answer
                return answer["result"]

    def turn(self) -> float:
        begin = time.perf_counter()
        prompt = [{"type": "text", "text": "hello"}]
        self.request("session/prompt", {"sessionId": self.session, "prompt": prompt})
        return (time.perf_counter() - begin) * 1000


def through(host: Host, conversation: str, runner: str = "goose") -> float:
    """From before the request to the end of the run, in milliseconds."""
    begin = time.time()
    run_id = host.send(runner, conversation, "hello")
    run = host.ended(run_id)
    assert run["status"] == "completed", run
    ended = datetime.datetime.fromisoformat(run["finished_at"].replace("Z", "+00:00")).timestamp()
    return (ended - begin) * 1000


def memory_mb(pids: list[int]) -> float:
    """What these processes have, shared pages in proportion."""
    total = 0
    for pid in pids:
        try:
            lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


def timed(host: Host) -> str:
    """goose behind a program that writes down when a prompt arrives."""
    (host.folder / "watched").mkdir(mode=0o777)
    words = ["python3", str(HERE.parents[2] / "bench/harness/watch.py"), str(host.folder / "watched/log"),
             str(MODULES / GOOSE), "acp"]
    written = f'command = ["{MODULES / GOOSE}", "acp"]'
    return agent("timed", MODULES / GOOSE).replace(written, f'command = {json.dumps(words)}\npaths = ["watched"]')


def to_the_prompt(host: Host) -> float:
    """From before the request to the prompt at a warm harness, in milliseconds."""
    begin = time.time()
    through(host, "warm", "timed")
    arrived = (host.folder / "watched/log").read_text().splitlines()[-1]
    return (float(arrived) - begin) * 1000


def ours(host: Host) -> list[int]:
    def is_goose(pid: int) -> bool:
        try:
            return b"goose\0acp" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return True
    return [pid for pid in descendants(host.process.pid) if not is_goose(pid)]


def median(values: list[float]) -> str:
    ordered = sorted(values)
    return f"p50 {statistics.median(ordered):7.2f} ms   p95 {ordered[int(len(ordered) * 0.95)]:7.2f} ms"


def main() -> int:
    def configuration(host: Host) -> str:
        text = brain(host) + agent("goose", MODULES / GOOSE)
        together = agent("together", MODULES / GOOSE).replace("open = 32", "open = 32, apart = false")
        return text + timed(host) + (together if WALL else "")

    host = Host(PROGRAM, HERE / "wall.toml", configuration)
    try:
        host.start()
        bare = Bare(host)
        bare.turn()
        through(host, "warm")
        direct, hosted, added = [], [], []
        for _ in range(TURNS):
            direct.append(bare.turn())
            hosted.append(through(host, "warm"))
            added.append(hosted[-1] - direct[-1])
        print(f"{'goose directly':26}{median(direct)}")
        print(f"{'goose through the host':26}{median(hosted)}")
        print(f"{'added, in pairs':26}{median(added)}")
        bare.process.kill()
        through(host, "warm", "timed")
        print(f"{'event to prompt, warm':26}{median([to_the_prompt(host) for _ in range(TURNS)])}")
        one = memory_mb(ours(host))
        apart, together = [], []
        for number in range(SESSIONS - 1):
            apart.append(through(host, f"s{number}"))
            if number == 0 and WALL:
                through(host, "first", "together")
            if WALL:
                together.append(through(host, f"s{number}", "together"))
        print(f"{'first turn of a session':26}{median(apart)}")
        if WALL:
            print(f"{'the same without a wall':26}{median(together)}")
        pids = ours(host)
        many = memory_mb(pids)
        print(f"host, supervisors and runner with 1 session {one:.1f} MB, with {SESSIONS} {many:.1f} MB ({len(pids)} processes)")
    finally:
        host.close()
    return 0


sys.exit(main())
