"""Kills the host, the runner or the harness at random moments of a task that asks for permission.

crash.py PROGRAM MODULES [KILLS [SEED]]
"""

import pathlib
import random
import signal
import os
import sys
import time
import urllib.error

from wall_host import GOOSE, HERE, Host, agent, alive, brain, descendants, environ

PROGRAM, MODULES = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
KILLS = int(sys.argv[3]) if len(sys.argv) > 3 else 6
SEED = int(sys.argv[4]) if len(sys.argv) > 4 else 1
OVER = ("completed", "failed", "cancelled", "timeout")


def configuration(host: Host) -> str:
    return brain(host) + agent("goose", MODULES / GOOSE).replace("execute = 'always'", "execute = 'ask'").replace(
        "other = 'always'", "other = 'ask'")


class Trial:
    def __init__(self, host: Host, dice: random.Random) -> None:
        self.host, self.dice = host, dice
        self.allowed: dict[str, int] = {}

    def quietly(self, work):
        """The host may be down at any moment."""
        try:
            return work()
        except (OSError, urllib.error.URLError, ValueError, KeyError):
            return None

    def answer_all(self, decision: str = "allow") -> None:
        page = self.quietly(lambda: self.host.call("GET", "/v1/approvals?status=pending")) or {"items": []}
        for approval in page["items"]:
            try:
                self.host.answer(approval, decision)
                self.allowed[approval["run_id"]] = self.allowed.get(approval["run_id"], 0) + 1
            except (OSError, urllib.error.URLError):
                # It may have been counted by the host all the same.
                self.allowed[approval["run_id"]] = self.allowed.get(approval["run_id"], 0) + 1

    def tree(self) -> list[int]:
        return [pid for pid in descendants(self.host.process.pid) if pid != self.host.process.pid]

    def command(self, pid: int) -> bytes:
        try:
            return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return b""

    def strike(self, who: str) -> None:
        victims = {
            "host": [self.host.process.pid],
            "runner": [pid for pid in self.tree() if b"acp-agent" in self.command(pid)],
            "harness": [pid for pid in self.tree() if b"goose\0acp" in self.command(pid)],
        }[who]
        for pid in victims:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if who == "host":
            self.host.process.wait()

    def one(self, number: int) -> str:
        host, name = self.host, f"c{number % 3}"
        marker = f"done-{number}"
        who = self.dice.choice(["host", "runner", "harness"])
        moment = self.dice.uniform(0, 2.5)
        before = set(self.tree())
        run_id = host.send("goose", name, f"RUN echo x >> {marker}")
        end = time.monotonic() + moment
        while time.monotonic() < end:
            self.answer_all()
            time.sleep(0.02)
        self.strike(who)
        if who == "host":
            host.wait("end of the old processes", lambda: not any(alive(pid) and environ(pid) for pid in before))
            host.start()

        def over():
            self.answer_all()
            run = self.quietly(lambda: host.call("GET", f"/v1/runs/{run_id}"))
            return run if run and run["status"] in OVER else None
        run = host.wait("end of the run", over)
        terminals = [result["type"] for result in host.results(run_id) if result["type"] in ("run.completed", "run.failed")]
        assert len(terminals) <= 1, (number, who, terminals)
        ran = sum(len(path.read_text().splitlines())
                  for path in (host.data / "harness/goose/workspaces").glob(f"*/work/{marker}"))
        assert ran <= self.allowed.get(run_id, 0), (number, who, "ran", ran, "allowed", self.allowed.get(run_id))
        used = host.call("GET", f"/v1/approvals?run_id={run_id}")["items"]
        assert ran <= len(used), (number, who, ran, used)
        return f"{who} after {moment:.2f} s: {run['status']} {(run.get('error') or {}).get('code', '')} ran {ran}"

    def usable(self) -> None:
        for name in ("c0", "c1", "c2"):
            run_id = self.host.send("goose", name, "hello")

            def over():
                # A harness may put an interrupted message and this one into one.
                self.answer_all("deny")
                run = self.host.call("GET", f"/v1/runs/{run_id}")
                return run if run["status"] in OVER else None
            run = self.host.wait("answer after the kills", over)
            assert run["status"] == "completed", (name, run)


def main() -> int:
    host = Host(PROGRAM, HERE / "wall.toml", configuration)
    host.answer = lambda approval, decision: host.call(
        "POST", f"/v1/approvals/{approval['approval_id']}", {"decision": decision, "nonce": approval["nonce"]})
    begin = time.monotonic()
    try:
        host.start()
        trial = Trial(host, random.Random(SEED))
        for number in range(KILLS):
            print(number, trial.one(number), flush=True)
            if number % 5 == 4:
                trial.usable()
        trial.usable()
        tree = trial.tree()
        host.process.terminate()
        host.process.wait(60)
        host.wait("end of all processes", lambda: not any(alive(pid) for pid in tree))
        folder = str(host.folder).encode()
        left = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
                if folder in environ(pid) and b"model-server" not in trial.command(pid)]
        assert not left, left
    except AssertionError:
        print(host.log()[-6000:])
        raise
    finally:
        host.close()
    print(f"{KILLS} kills (seed {SEED}): one end each, no approval used twice, nothing left ({time.monotonic() - begin:.0f} s)")
    return 0


sys.exit(main())
