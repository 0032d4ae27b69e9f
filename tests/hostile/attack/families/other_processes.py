"""Other processes: signals, tracing, memory, limits and priorities.

Signals to the host and to runners are harmless ones (`SIGURG`); a bystander of the operator records `SIGUSR1` and `SIGUSR2`.
"""

import ctypes
import fcntl
import os
import resource
import signal
import struct

import calls
from registry import PID_NAMESPACE, Refused, escape

ROLES = {"host": "host_pid", "supervisor": "supervisor_pid", "neighbour": "victim_pid", "bystander": "bystander_pid"}
INFO = struct.pack("iii4xii", signal.SIGURG, 0, -1, 0, 0) + bytes(104)


# Before those that may stop their targets.
@escape("processes.usr1_bystander", "signal a process of the operator", proof="effect")
def usr1_bystander(t):
    os.kill(t.bystander_pid, signal.SIGUSR1)
    return "signalled"


@escape("processes.usr1_neighbour", "signal another runner", proof="effect")
def usr1_neighbour(t):
    os.kill(t.victim_pid, signal.SIGUSR1)
    return "signalled"


@escape("processes.sigio_bystander", "let the kernel signal a process of the operator", proof="effect")
def sigio_bystander(t):
    f_setsig = 10
    reader, writer = os.pipe()
    fcntl.fcntl(reader, fcntl.F_SETOWN, t.bystander_pid)
    fcntl.fcntl(reader, f_setsig, signal.SIGUSR2)
    fcntl.fcntl(reader, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    os.write(writer, b"x")
    return "signalled"


def on_each(verb, summary, deed, roles=tuple(ROLES), **traits):
    for role in roles:
        @escape(f"processes.{verb}_{role}", f"{summary} {role}", **traits)
        def attack(t, role=role):
            pid = getattr(t, ROLES[role])
            if t.pid_namespace != PID_NAMESPACE:
                raise Refused("its processes have their own numbers")
            return f"{verb}: {deed(pid)}"


def pidfd(pid):
    return calls.call("pidfd_open", pid, 0)


def by_pidfd(pid):
    return calls.call("pidfd_send_signal", pidfd(pid), signal.SIGURG, None, 0)


def read_memory(pid):
    buffer = ctypes.create_string_buffer(8)
    vector = struct.pack("QQ", ctypes.addressof(buffer), 8)
    remote = struct.pack("QQ", ctypes.addressof(buffer), 8)
    return calls.passes("process_vm_readv", pid, ctypes.c_char_p(vector), 1, ctypes.c_char_p(remote), 1, 0)


def write_memory(pid):
    vector = struct.pack("QQ", 8, 0)
    return calls.passes("process_vm_writev", pid, ctypes.c_char_p(vector), 0, ctypes.c_char_p(vector), 1, 0)


def trace(pid):
    attach = 16
    return calls.call("ptrace", attach, pid, 0, 0)


def seize(pid):
    seize_request = 0x4206
    return calls.call("ptrace", seize_request, pid, 0, 0)


def raise_limit(pid):
    limits = resource.prlimit(pid, resource.RLIMIT_CORE)
    return resource.prlimit(pid, resource.RLIMIT_CORE, limits)


def set_attributes(pid):
    attributes = struct.pack("IIQiIQQQ", 48, 0, 0, 1, 0, 0, 0, 0)
    return calls.call("sched_setattr", pid, ctypes.c_char_p(attributes), 0)


def namespaces_of(pid):
    return calls.passes("setns", pidfd(pid), 0x10000000)


on_each("probe", "learn by signal 0 that there is", lambda pid: os.kill(pid, 0), ("host", "supervisor", "neighbour"))
on_each("kill", "signal", lambda pid: os.kill(pid, signal.SIGURG), ("host", "supervisor", "neighbour"))
on_each("tkill", "signal a thread of", lambda pid: calls.call("tkill", pid, signal.SIGURG))
on_each("tgkill", "signal a thread and group of", lambda pid: calls.call("tgkill", pid, pid, signal.SIGURG))
on_each("sigqueue", "queue a signal for", lambda pid: calls.call("rt_sigqueueinfo", pid, signal.SIGURG, ctypes.c_char_p(INFO)))
on_each("tgsigqueue", "queue a signal for a thread of",
        lambda pid: calls.call("rt_tgsigqueueinfo", pid, pid, signal.SIGURG, ctypes.c_char_p(INFO)))
on_each("pidfd_signal", "signal by descriptor", by_pidfd)
on_each("killpg", "signal the process group of", lambda pid: os.killpg(os.getpgid(pid), signal.SIGURG))
on_each("ptrace", "attach to", trace)
on_each("ptrace_seize", "seize", seize)
on_each("vm_read", "read memory of", read_memory)
on_each("vm_write", "write memory of", write_memory)
on_each("prlimit", "set limits of", raise_limit)
on_each("setpriority", "set the priority of",
        lambda pid: os.setpriority(os.PRIO_PROCESS, pid, max(os.getpriority(os.PRIO_PROCESS, pid), 0)))
on_each("affinity", "set the CPUs of", lambda pid: os.sched_setaffinity(pid, os.sched_getaffinity(pid)))
on_each("scheduler", "set the scheduler of",
        lambda pid: os.sched_setscheduler(pid, os.SCHED_OTHER, os.sched_param(0)))
on_each("sched_attr", "set scheduler attributes of", set_attributes)
on_each("ioprio", "set the disk priority of", lambda pid: calls.call("ioprio_set", 1, pid, (2 << 13) | 4))
on_each("kcmp", "compare resources of", lambda pid: calls.call("kcmp", pid, os.getpid(), 0, 0, 0))
on_each("pidfd_getfd", "take a descriptor of", lambda pid: calls.call("pidfd_getfd", pidfd(pid), 0, 0))
on_each("madvise", "reclaim memory of", lambda pid: calls.passes("process_madvise", pidfd(pid), None, 0, 21, 0))
on_each("move_pages", "learn pages of", lambda pid: calls.passes("move_pages", pid, 0, None, None, None, 0))
on_each("migrate_pages", "move pages of", lambda pid: calls.passes("migrate_pages", pid, 0, None, None))
on_each("perf", "count events of",
        lambda pid: calls.passes("perf_event_open", ctypes.c_char_p(struct.pack("II", 1, 112) + bytes(104)), pid, -1, -1, 0))
on_each("setns", "enter namespaces of", namespaces_of)
on_each("setpgid", "move into a group: that of", lambda pid: os.setpgid(pid, 0))
on_each("robust_list", "read the robust list of",
        lambda pid: calls.call("get_robust_list", pid, ctypes.byref(ctypes.c_long()), ctypes.byref(ctypes.c_long())))


@escape("processes.priority_of_user", "set the priority of every process of the user")
def priority_of_user(t):
    current = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_USER, 0, current)
    return "set"


@escape("processes.shared_memory", "create shared memory that outlives the process")
def shared_memory(t):
    number = calls.call("shmget", 0x67726E00 + os.getpid() % 200, 4096, 0o1600)
    calls.libc.shmctl(number, 0, None)
    return number


@escape("processes.semaphores", "create semaphores that outlive the process")
def semaphores(t):
    number = calls.call("semget", 0x67726E00 + os.getpid() % 200, 1, 0o1600)
    calls.libc.semctl(number, 0, 0)
    return number


@escape("processes.message_queue", "create a message queue that outlives the process")
def message_queue(t):
    number = calls.call("msgget", 0x67726E00 + os.getpid() % 200, 0o1600)
    calls.libc.msgctl(number, 0, None)
    return number


@escape("processes.posix_queue", "create a POSIX message queue that outlives the process", proof="effect")
def posix_queue(t):
    calls.call("mq_open", f"hostile-{t.kind}-{t.run}".encode(), os.O_CREAT | os.O_RDWR, 0o600, None)
    return "created"


@escape("processes.own_child", "signal, trace-free, an own child")
def own_child(t):
    pid = os.fork()
    if pid == 0:
        signal.pause()
    os.kill(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1]
