"""The list of escapes, and how one is tried.

Invariant: an escape that could disturb the next runs in a child process of its own, with a time limit.
"""

import json
import os
import select
import signal
import time
from dataclasses import dataclass
from typing import Callable

ESCAPES = {}
EVIDENCE_CHARS_MAX = 400


# Numbers of processes and ports mean nothing in another namespace.
PID_NAMESPACE, NET_NAMESPACE, MOUNT_NAMESPACE = (os.readlink(f"/proc/self/ns/{name}") for name in ("pid", "net", "mnt"))



def descriptors():
    """The files behind the descriptors that this process was started with."""
    found = {}
    for number in range(256):
        try:
            found[number] = os.readlink(f"/proc/self/fd/{number}")
        except OSError:
            pass
    return found


INHERITED = descriptors()


class Refused(Exception):
    """The attempt did not reach its target, for another reason than an error of the system."""


class Absent(Exception):
    """This machine lacks what the escape is about."""


@dataclass(frozen=True)
class Escape:
    name: str
    summary: str
    attack: Callable
    # Kinds of process that it is tried in; None: all.
    kinds: tuple = None
    # It may end the process that tries it, so it is sent in a request of its own.
    alone: bool = False
    # What decides: "claim" or an effect seen from outside; "effect": only the latter.
    proof: str = "claim"
    # The shared object (see `suite/targets.py`) that it changes.
    shared: str = None
    seconds: float = 3.0
    # Runs in the program itself, which sees more of its own /proc than its children do.
    inline: bool = False

    @property
    def family(self):
        return self.name.split(".")[0]


def escape(name, summary, **traits):
    """Registers an attack. It returns what it reached; an exception means that it was refused."""

    def register(attack):
        assert name not in ESCAPES, name
        ESCAPES[name] = Escape(name, summary, attack, **traits)
        return attack

    return register


class Targets:
    """What the attacker knows: every path, process and address that it could find out or guess."""

    def __init__(self, given, name):
        self.__dict__.update(given)
        self.name = name

    @property
    def canary(self):
        """A file in the data folder, for this escape alone."""
        return f"{self.data}/canary/{self.kind}/{self.name}"

    @property
    def neighbour(self):
        """A file in the folder of another runner, for this escape alone."""
        return f"{self.victim}/canary/{self.kind}/{self.name}"

    @property
    def label(self):
        """Identifies this attempt for a listener."""
        return f"{self.kind}/{self.name}"


def attempt(escape, given):
    """Tries one escape: `{"outcome": "reached" | "refused" | "absent", "evidence": TEXT}`."""
    if escape.inline:
        return outcome(escape, Targets(given, escape.name))
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        os.setpgid(0, 0)
        report = json.dumps(outcome(escape, Targets(given, escape.name)))
        os.write(writer, report.encode())
        os._exit(0)
    os.close(writer)
    text = receive(reader, escape.seconds)
    os.close(reader)
    end(pid)
    if text:
        # A child that the attack left in this code may have reported too.
        return json.JSONDecoder().raw_decode(text.decode())[0]
    return {"outcome": "refused", "evidence": "no answer: killed or out of time"}


def outcome(escape, targets):
    try:
        reached = escape.attack(targets)
    except Absent as error:
        return {"outcome": "absent", "evidence": str(error)}
    except Refused as error:
        return {"outcome": "refused", "evidence": str(error)}
    except Exception as error:  # Every error is a refusal; which one is for the reader.
        return {"outcome": "refused", "evidence": f"{type(error).__name__}: {error}"[:EVIDENCE_CHARS_MAX]}
    return {"outcome": "reached", "evidence": str(reached)[:EVIDENCE_CHARS_MAX]}


def receive(reader, seconds):
    deadline, text = time.monotonic() + seconds, b""
    while (rest := deadline - time.monotonic()) > 0:
        if not select.select([reader], [], [], rest)[0]:
            break
        piece = os.read(reader, 65536)
        if not piece:
            break
        text += piece
        if text.endswith(b"}"):
            break
    return text


def end(pid):
    """Ends the child and its process group; what left the group is for the host to end."""
    for kill in (os.killpg, os.kill):
        try:
            kill(pid, signal.SIGKILL)
        except OSError:
            pass
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        pass
