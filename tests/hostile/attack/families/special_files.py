"""Devices, `/proc/sys`, `/sys` and other files that reach the kernel. They are opened, never written with new content."""

import fcntl
import glob
import os
import stat

from reach import own, read
from registry import Absent, Refused, escape


def opens(name, summary, path, flags=os.O_RDWR):
    @escape(f"special.{name}", summary)
    def attack(t):
        return f"descriptor {os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)}"


for device in ("mem", "kmem", "port", "kmsg", "kvm", "fuse", "loop-control", "net/tun", "vhost-net", "vhost-vsock",
               "vsock", "userfaultfd", "snapshot", "ptmx", "hpet", "rtc0", "watchdog", "uinput", "cuse", "mapper/control",
               "btrfs-control", "autofs", "dri/card0", "snd/seq", "console", "tty0", "tty1", "ttyS0", "vcs", "hwrng"):
    opens(f"dev_{device.replace('/', '_').replace('-', '_')}", f"open /dev/{device}", f"/dev/{device}")

opens("proc_sysrq", "open the trigger of the kernel's emergency keys", "/proc/sysrq-trigger", os.O_WRONLY)
opens("proc_kcore", "open the kernel's memory", "/proc/kcore", os.O_RDONLY)
opens("proc_kmsg", "open the kernel's log", "/proc/kmsg", os.O_RDONLY)
opens("core_pattern", "open the program for core dumps for writing", "/proc/sys/kernel/core_pattern", os.O_WRONLY)
opens("modprobe", "open the path of modprobe for writing", "/proc/sys/kernel/modprobe", os.O_WRONLY)
opens("hostname", "open the host name for writing", "/proc/sys/kernel/hostname", os.O_WRONLY)
opens("overcommit", "open a setting of memory for writing", "/proc/sys/vm/overcommit_memory", os.O_WRONLY)
opens("drop_caches", "open the switch that empties caches", "/proc/sys/vm/drop_caches", os.O_WRONLY)
opens("ip_forward", "open a setting of the network for writing", "/proc/sys/net/ipv4/ip_forward", os.O_WRONLY)
opens("binfmt", "register a handler of programs", "/proc/sys/fs/binfmt_misc/register", os.O_WRONLY)
opens("userns_max", "open the limit of namespaces for writing", "/proc/sys/user/max_user_namespaces", os.O_WRONLY)
opens("uevent_helper", "open the helper of device events", "/sys/kernel/uevent_helper", os.O_WRONLY)
opens("sys_power", "open the power state", "/sys/power/state", os.O_WRONLY)
opens("sys_debug", "open the kernel's debug files", "/sys/kernel/debug", os.O_RDONLY | os.O_DIRECTORY)
opens("sys_tracing", "open the kernel's tracing files", "/sys/kernel/tracing", os.O_RDONLY | os.O_DIRECTORY)
opens("sys_security", "open the files of security modules", "/sys/kernel/security", os.O_RDONLY | os.O_DIRECTORY)
opens("sys_block", "list the disks", "/sys/block", os.O_RDONLY | os.O_DIRECTORY)
opens("sys_net", "list the network cards", "/sys/class/net", os.O_RDONLY | os.O_DIRECTORY)
opens("sys_firmware", "open the firmware's files", "/sys/firmware", os.O_RDONLY | os.O_DIRECTORY)
opens("sys_bpf", "open the pinned BPF objects", "/sys/fs/bpf", os.O_RDONLY | os.O_DIRECTORY)


@escape("special.raw_disk", "open a disk of the machine")
def raw_disk(t):
    if not t.disks:
        raise Absent("no block device")
    return f"descriptor {os.open(t.disks[0], os.O_RDONLY)}"


@escape("special.make_disk", "create the node of a disk in the own folder and open it")
def make_disk(t):
    os.mknod(own(t), stat.S_IFBLK | 0o600, os.makedev(*(t.disk_numbers or (8, 0))))
    return f"descriptor {os.open(own(t), os.O_RDONLY)}"


@escape("special.make_mem", "create the node of the machine's memory in the own folder and open it")
def make_mem(t):
    os.mknod(own(t), stat.S_IFCHR | 0o600, os.makedev(1, 1))
    return f"descriptor {os.open(own(t), os.O_RDONLY)}"


@escape("special.foreign_terminals", "open a terminal of the machine")
def foreign_terminals(t):
    for path in t.terminals:
        try:
            return f"{path}: {os.open(path, os.O_RDWR | os.O_NOCTTY)}"
        except OSError as error:
            last = error
    if not t.terminals:
        raise Absent("no terminal is open")
    raise last


@escape("special.type_into_terminal", "type into the controlling terminal")
def type_into_terminal(t):
    terminal = os.open("/dev/tty", os.O_RDWR)
    tiocsti = 0x5412
    fcntl.ioctl(terminal, tiocsti, b"\0")
    return "typed"


@escape("special.cgroup_create", "create a cgroup")
def cgroup_create(t):
    for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/memory"):
        try:
            os.mkdir(f"{root}/hostile-{t.kind}")
            os.rmdir(f"{root}/hostile-{t.kind}")
            return f"created in {root}"
        except OSError as error:
            last = error
    raise last


@escape("special.cgroup_leave", "move itself to the root cgroup")
def cgroup_leave(t):
    written = []
    for path in glob.glob("/sys/fs/cgroup/cgroup.procs") + glob.glob("/sys/fs/cgroup/*/cgroup.procs"):
        try:
            with open(path, "w") as file:
                file.write("0")
            written.append(path)
        except OSError:
            pass
    if not written:
        raise Refused("no cgroup could be entered")
    return written


@escape("special.own_limits", "raise the own memory score against the OOM killer", inline=True)
def own_limits(t):
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("-900")
    return read("/proc/self/oom_score_adj")


@escape("special.own_id_map", "write the map of user ids", inline=True)
def own_id_map(t):
    with open("/proc/self/uid_map", "w") as file:
        file.write("0 0 1")
    return read("/proc/self/uid_map")


@escape("special.suid_program", "gain rights by a set-user-id program", inline=True)
def suid_program(t):
    import subprocess
    for program in ("/usr/bin/su", "/bin/su", "/usr/bin/mount", "/usr/bin/passwd", "/usr/bin/sudo"):
        if os.path.exists(program):
            done = subprocess.run([program, "--version"], capture_output=True, timeout=2)
            break
    status = read("/proc/self/status")
    if "NoNewPrivs:\t1" in status:
        raise Refused("no new privileges")
    return f"set-user-id programs keep their rights: {done.returncode}"


@escape("special.capabilities", "keep a capability", inline=True)
def capabilities(t):
    lines = [line for line in read("/proc/self/status").splitlines() if line.startswith(("CapPrm", "CapEff", "CapAmb"))]
    if all(int(line.split()[1], 16) == 0 for line in lines):
        raise Refused("none")
    return lines
