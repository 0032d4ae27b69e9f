"""System calls that reach the kernel or the machine. Arguments are harmless: an error behind the check of permission
shows that the call is open."""

import ctypes
import os
import signal
import struct
import time

import calls
from reach import own
from registry import MOUNT_NAMESPACE, Refused, escape

NAMESPACES = {"mount": 0x20000, "cgroup": 0x2000000, "uts": 0x4000000, "ipc": 0x8000000, "user": 0x10000000,
              "pid": 0x20000000, "net": 0x40000000, "time": 0x80}


def probes(name, summary, attempt):
    @escape(f"kernel.{name}", summary)
    def attack(t):
        return attempt(t)


def text(*parts):
    return ctypes.c_char_p(struct.pack(*parts))


for namespace, flag in NAMESPACES.items():
    probes(f"unshare_{namespace}", f"create a {namespace} namespace", lambda t, flag=flag: calls.call("unshare", flag))
    file = {"mount": "mnt"}.get(namespace, namespace)
    probes(f"setns_{namespace}", f"enter the own {namespace} namespace again", lambda t, file=file, flag=flag: calls.passes(
        "setns", os.open(f"/proc/self/ns/{file}", os.O_RDONLY), flag))


def cloned(flags):
    pid = calls.call("clone", flags | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return f"child {pid}"


def cloned3(flags):
    arguments = struct.pack("8Q", flags, 0, 0, 0, signal.SIGCHLD, 0, 0, 0)
    pid = calls.call("clone3", ctypes.c_char_p(arguments), len(arguments))
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return f"child {pid}"


for namespace in ("user", "mount", "net", "pid"):
    probes(f"clone_{namespace}", f"start a child in a new {namespace} namespace",
           lambda t, flag=NAMESPACES[namespace]: cloned(flag))
    probes(f"clone3_{namespace}", f"start a child in a new {namespace} namespace by clone3",
           lambda t, flag=NAMESPACES[namespace]: cloned3(flag))


def mount(t):
    os.mkdir(own(t))
    return calls.call("mount", b"none", own(t).encode(), b"tmpfs", 0, None)


probes("mount", "mount a file system", mount)
probes("mount_proc", "mount another /proc", lambda t: (os.mkdir(own(t)), calls.call(
    "mount", b"none", own(t).encode(), b"proc", 0, None)))
probes("remount", "remount the root writable", lambda t: calls.call("mount", None, b"/", None, 32 | 4096, None))
probes("propagation", "change how mounts propagate", lambda t: calls.call("mount", None, b"/", None, 1 << 20, None))
probes("umount", "unmount what covers a folder", lambda t: calls.passes("umount2", t.data.encode(), 2))
probes("umount_proc", "unmount /proc", lambda t: calls.call("umount2", b"/proc", 2))
probes("pivot_root", "change the root of the namespace", lambda t: calls.passes("pivot_root", b".", b"."))
probes("open_tree", "copy a mount", lambda t: calls.call("open_tree", calls.AT_FDCWD, b"/", 1))
probes("move_mount", "move a mount", lambda t: calls.passes("move_mount", -1, b"", -1, b"", 0))
probes("fsopen", "open a file system", lambda t: calls.call("fsopen", b"tmpfs", 0))
probes("fsconfig", "configure a file system", lambda t: calls.passes("fsconfig", -1, 6, None, None, 0))
probes("fsmount", "make a mount", lambda t: calls.passes("fsmount", -1, 0, 0))
probes("fspick", "reconfigure a file system", lambda t: calls.call("fspick", calls.AT_FDCWD, b"/", 0))
probes("mount_setattr", "change attributes of a mount",
       lambda t: calls.passes("mount_setattr", calls.AT_FDCWD, b"/", 0, text("4Q", 0, 1, 0, 0), 32))
probes("open_tree_attr", "copy a mount with attributes",
       lambda t: calls.call("open_tree_attr", calls.AT_FDCWD, b"/", 1, None, 0))
probes("listmount", "list the mounts of the machine",
       lambda t: refuse("its mounts are its own") if t.mount_namespace != MOUNT_NAMESPACE else calls.call("listmount", text("IIQQQ", 32, 0, (1 << 64) - 1, 0, 0), ctypes.create_string_buffer(800), 100, 0))
probes("bpf_map", "create a BPF map", lambda t: calls.call("bpf", 0, text("5I", 2, 4, 4, 1, 0), 20))
probes("bpf_program", "load a BPF program", lambda t: calls.passes("bpf", 5, text("II8x8x", 1, 0), 24))
probes("perf", "count own events", lambda t: calls.call("perf_event_open", text("IIQ96x", 1, 112, 0), 0, -1, -1, 0))
probes("keyctl", "join a session of keys", lambda t: calls.call("keyctl", 1, None))
probes("keyctl_session", "read the session's keys", lambda t: calls.call("keyctl", 0, -3, 0))
probes("add_key", "add a key", lambda t: calls.call("add_key", b"user", b"hostile", b"x", 1, -1))
probes("request_key", "request a key", lambda t: calls.passes("request_key", b"user", b"hostile", None, 0))
probes("io_uring", "set up an io_uring", lambda t: calls.call("io_uring_setup", 1, ctypes.create_string_buffer(120)))
probes("userfaultfd", "handle own page faults", lambda t: calls.call("userfaultfd", 1))
probes("modify_ldt", "change the table of segments", lambda t: calls.passes("modify_ldt", 1, text("4I", 0, 0, 0, 0x51), 16))
probes("personality_layout", "switch off address randomisation", lambda t: calls.call("personality", 0x0040000))
probes("personality_exec", "make readable memory executable", lambda t: calls.call("personality", 0x0400000))
probes("kexec", "load another kernel", lambda t: calls.passes("kexec_load", 0, 0, None, 0))
probes("kexec_file", "load another kernel from a file", lambda t: calls.passes("kexec_file_load", -1, -1, 0, b"", 0))
probes("init_module", "load a module", lambda t: calls.passes("init_module", b"", 0, b""))
probes("finit_module", "load a module from a file", lambda t: calls.passes("finit_module", -1, b"", 0))
probes("delete_module", "remove a module", lambda t: calls.passes("delete_module", b"hostile-none", 0o4000))
probes("reboot", "restart the machine", lambda t: calls.passes("reboot", 0, 0, 0, None))
probes("swapon", "add swap space", lambda t: calls.passes("swapon", b"/dev/null/none", 0))
probes("swapoff", "remove swap space", lambda t: calls.passes("swapoff", b"/dev/null/none"))
probes("acct", "record the processes of the machine", lambda t: calls.passes("acct", b"/dev/null/none"))
probes("quotactl", "change quotas", lambda t: calls.passes(
    "quotactl", 0x800003 << 8, b"/dev/vda", 0, None, refused=(1, 13, 38, 3, 15, 2)))
probes("quotactl_fd", "change quotas by descriptor",
       lambda t: calls.passes("quotactl_fd", os.open("/usr", os.O_RDONLY), 0x800008 << 8, 0,
                              ctypes.create_string_buffer(128), refused=(1, 13, 38, 3, 30)))
probes("settimeofday", "set the clock", lambda t: calls.call(
    "settimeofday", text("qq", *divmod(time.time_ns() // 1000, 10**6)), None))
probes("clock_settime", "set a clock", lambda t: calls.call(
    "clock_settime", 0, text("qq", *divmod(time.time_ns(), 10**9))))
probes("adjtimex", "adjust the clock", lambda t: calls.call("adjtimex", text("I204x", 0x4000)))
probes("sethostname", "set the host name", lambda t: calls.call(
    "sethostname", os.uname().nodename.encode(), len(os.uname().nodename)))
probes("setdomainname", "set the domain name", lambda t: calls.call("setdomainname", b"(none)", 6))
probes("syslog", "read the kernel's log", lambda t: calls.call("syslog", 3, ctypes.create_string_buffer(100), 100))
probes("syslog_size", "learn the size of the kernel's log", lambda t: calls.call("syslog", 10, None, 0))
probes("iopl", "reach the ports of the hardware", lambda t: calls.call("iopl", 3))
probes("ioperm", "reach one port of the hardware", lambda t: calls.call("ioperm", 0x80, 1, 1))
probes("vhangup", "hang up the terminal", lambda t: calls.call("vhangup"))
probes("uselib", "load a library by the old call", lambda t: calls.passes("uselib", b"/none"))
probes("lookup_dcookie", "look up a path by cookie", lambda t: calls.passes("lookup_dcookie", 0, None, 0))
probes("memfd_secret", "hide memory from the kernel", lambda t: calls.call("memfd_secret", 0))
probes("capset", "gain a capability", lambda t: calls.call(
    "capset", text("Ii", 0x20080522, 0), text("6I", 1 << 21, 1 << 21, 0, 0, 0, 0)))
probes("realtime", "run with real-time priority", lambda t: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)))
probes("nice", "raise the own priority", lambda t: os.nice(-5))
probes("setgroups", "join another group", lambda t: os.setgroups([0]))


def become(number):
    if os.getuid() == number:
        raise Refused("it is that user already")
    os.setresuid(number, number, number)
    return f"became {number}"


probes("setuid_root", "become root", lambda t: become(0))
probes("setuid_host", "become the user of the host", lambda t: become(t.host_uid) if t.host_uid else become(0))
probes("setuid_other", "become another user", lambda t: become(12345))
probes("root_inside", "run as root", lambda t: os.getuid() if os.getuid() == 0 else refuse("it is not root"))
probes("host_user", "run as the user of the host, where another one was possible",
       lambda t: os.getuid() if os.getuid() == t.host_uid and t.host_uid == 0 else refuse("another user, or none to choose"))


def refuse(why):
    raise Refused(why)


probes("x32_chmod", "chmod by the x32 interface", lambda t: calls.x32("chmod", t.canary.encode(), 0o666))
probes("x32_ptrace", "ptrace by the x32 interface", lambda t: calls.raw(521 | calls.X32, 16, t.bystander_pid, 0, 0))
probes("x32_unshare", "unshare by the x32 interface", lambda t: calls.x32("unshare", NAMESPACES["user"]))
probes("x32_mount", "mount by the x32 interface", lambda t: calls.x32("mount", b"none", b"/", b"tmpfs", 0, None))
probes("x32_kill", "kill by the x32 interface", lambda t: calls.x32("kill", t.host_pid, 0))
probes("x32_any", "any call by the x32 interface", lambda t: calls.raw(39 | calls.X32))
probes("int80_chmod", "chmod by the 32-bit interface", lambda t: calls.int80(15, calls.low_text(t.canary.encode()), 0o666))
probes("int80_ptrace", "ptrace by the 32-bit interface", lambda t: calls.int80(26, 16, t.bystander_pid))
probes("int80_unshare", "unshare by the 32-bit interface", lambda t: calls.int80(310, NAMESPACES["user"]))
probes("int80_socket", "socket by the 32-bit interface", lambda t: calls.int80(359, 1, 1))
probes("int80_kill", "kill by the 32-bit interface", lambda t: calls.int80(37, t.host_pid, 0))
probes("int80_any", "any call by the 32-bit interface", lambda t: calls.int80(20))


@escape("kernel.own_memfd_exec", "run an own program from nameless memory")
def own_memfd_exec(t):
    memory = os.memfd_create("own", 0)
    with open("/bin/true", "rb") as file:
        os.write(memory, file.read())
    pid = os.fork()
    if pid == 0:
        os.execve(memory, ["true"], {})
    if os.waitpid(pid, 0)[1] != 0:
        raise Refused("it did not run")
    return "ran"


@escape("kernel.exec_own_file", "run an own program from the own folder")
def exec_own_file(t):
    with open("/bin/true", "rb") as source, open(own(t), "wb") as file:
        file.write(source.read())
    os.chmod(own(t), 0o755)
    pid = os.fork()
    if pid == 0:
        try:
            os.execve(own(t), ["true"], {})
        finally:
            os._exit(1)
    if os.waitpid(pid, 0)[1] != 0:
        raise Refused("it did not run")
    return "ran"


@escape("kernel.core_dump", "leave a core dump", seconds=5)
def core_dump(t):
    import resource
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except (OSError, ValueError):
        pass
    pid = os.fork()
    if pid == 0:
        os.chdir(os.environ["TMPDIR"])
        os.abort()
    status = os.waitpid(pid, 0)[1]
    if not os.WCOREDUMP(status):
        raise Refused("no dump was written")
    return "dumped"
