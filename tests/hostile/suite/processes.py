"""Processes of the attackers and of the operator, seen from outside."""

import os
import subprocess
import threading
import time
from pathlib import Path

BYSTANDER = Path(__file__).resolve().parent / "programs/bystander.py"


def pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def tagged(tag):
    """Processes whose arguments have the tag; zombies have none."""
    return [pid for pid in pids() if tag.encode() in read(f"/proc/{pid}/cmdline").split(b"\0")]


def parent(pid):
    text = read(f"/proc/{pid}/stat").decode(errors="replace").rsplit(") ", 1)
    return int(text[1].split()[1]) if len(text) == 2 else 0


def names():
    """`{COMM: pid}` of all processes that are not zombies."""
    found = {}
    for pid in pids():
        stat = read(f"/proc/{pid}/stat").decode(errors="replace").rsplit(") ", 1)
        if len(stat) == 2 and stat[1][0] not in "ZX":
            found[stat[0].split("(", 1)[1]] = pid
    return found


def supervisor_of(pid, host):
    """The process between the host and one of its programs: the child of the host."""
    while pid > 1 and parent(pid) != host:
        pid = parent(pid)
    return pid


class Bystander:
    """A process of the operator that counts its signals."""

    def __init__(self, place, kind):
        self.log = place.base / f"bystander-{kind.name}"
        place.write(self.log, "")
        self.process = subprocess.Popen([place.python, "-", self.log], stdin=open(BYSTANDER, "rb"), cwd="/",
                                        stdout=subprocess.DEVNULL, **place.as_user())

    @property
    def pid(self):
        return self.process.pid

    def signals(self):
        """The names of those that it received; all of them if it ended."""
        return self.log.read_text() if self.process.poll() is None else "SIGUSR1 SIGUSR2"

    def end(self):
        self.process.kill()
        self.process.wait()


class MemoryMeter(threading.Thread):
    """Measures what the processes of a tag hold: resident memory and nameless files."""

    def __init__(self, tag):
        super().__init__(daemon=True)
        self.tag, self.stopped, self.samples = tag, threading.Event(), []

    def run(self):
        while not self.stopped.wait(0.1):
            self.samples.append((time.monotonic(), held_mb(self.tag)))

    def sustained_mb(self, seconds):
        """The most that was held for this long."""
        self.stopped.set()
        self.join(5)
        best = 0
        for start, _ in self.samples:
            window = [mb for at, mb in self.samples if start <= at <= start + seconds]
            if self.samples[-1][0] >= start + seconds:
                best = max(best, min(window))
        return best


def held_mb(tag):
    total, seen = 0, set()
    for pid in tagged(tag):
        for line in read(f"/proc/{pid}/smaps_rollup").splitlines():
            if line.startswith(b"Pss:"):
                total += int(line.split()[1]) * 1024
        try:
            descriptors = os.listdir(f"/proc/{pid}/fd")
        except OSError:
            continue
        for number in descriptors:
            try:
                path = f"/proc/{pid}/fd/{number}"
                if "memfd:" in os.readlink(path):
                    found = os.stat(path)
                    if found.st_ino not in seen:
                        seen.add(found.st_ino)
                        total += found.st_blocks * 512
            except OSError:
                pass
    return total >> 20


def tagged_any(run):
    """Processes of any kind of this pass."""
    wanted = f"tag-{run}-".encode()
    return [pid for pid in pids() if wanted in read(f"/proc/{pid}/cmdline")]
