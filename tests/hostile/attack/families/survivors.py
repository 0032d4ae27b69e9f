"""Processes that try to outlive the call or the host. Each names itself, so that the suite finds it from outside.

The name is `gh`, the pass, the kind and the number of the escape, in at most 15 bytes.
"""

import ctypes
import os
import signal
import time

from registry import ESCAPES, escape

SECONDS_MAX = 60


def survives(name, summary, prepare):
    """A grandchild that was prepared and then waits."""
    @escape(f"survivors.{name}", summary, proof="effect")
    def attack(t):
        reader, writer = os.pipe()
        if os.fork() == 0:
            try:
                os.setsid() if name == "session" else os.setpgid(0, 0)
                label(t)
                os.write(writer, b"x")
                prepare()
            finally:
                sleep()
        os.read(reader, 1)
        return "started"


def label(t):
    number = [name for name in ESCAPES if name.startswith("survivors.")].index(t.name)
    pr_set_name = 15
    ctypes.CDLL(None).prctl(pr_set_name, f"gh{t.run[:4]}{t.kind[:4]}{number}".encode(), 0, 0, 0)


def sleep():
    end = time.monotonic() + SECONDS_MAX
    while time.monotonic() < end:
        time.sleep(0.2)
    os._exit(0)


def double_fork():
    """A process that leads a group cannot start a session: its child can."""
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)


def ignore_signals():
    for number in range(1, 32):
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_IGN)


def block_signals():
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))


def close_streams():
    double_fork()
    os.closerange(0, 1024)


def forget_parent():
    """No death signal, and descendants of its own."""
    prctl = ctypes.CDLL(None).prctl
    pr_set_pdeathsig, pr_set_child_subreaper = 1, 36
    prctl(pr_set_pdeathsig, 0, 0, 0, 0)
    prctl(pr_set_child_subreaper, 1, 0, 0, 0)
    double_fork()


def stop():
    """Stopped, and stopped again when the kernel continues an orphaned group."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    end = time.monotonic() + SECONDS_MAX
    while time.monotonic() < end:
        os.kill(os.getpid(), signal.SIGSTOP)


def hop():
    """A new process every few milliseconds, so that a list of processes is always old."""
    end = time.monotonic() + SECONDS_MAX
    while time.monotonic() < end:
        if os.fork():
            os._exit(0)
        os.setsid()
        time.sleep(0.005)
    os._exit(0)


def hold_streams():
    double_fork()
    ignore_signals()


survives("child", "a child that stays", lambda: None)
survives("session", "a child in a session of its own", lambda: None)
survives("double_fork", "a daemon by double fork", double_fork)
survives("ignore_signals", "a child that ignores every signal", ignore_signals)
survives("block_signals", "a child that blocks every signal", block_signals)
survives("close_streams", "a daemon without streams", close_streams)
survives("forget_parent", "a daemon that adopts its own children", forget_parent)
survives("stopped", "a stopped child", stop)
survives("hop", "a child that changes its process id all the time", hop)
survives("hold_streams", "a child that keeps the streams open and ignores signals", hold_streams)
