"""Changes and observation of files that the process may not write: modes, owners, times, attributes, watches.

Values stay as they are where the target matters to others: the change of `st_ctime` shows that the call worked.
"""

import ctypes
import fcntl
import os
import select
import struct

import calls
from registry import Refused, escape

FS_IOC_GETFLAGS, FS_IOC_SETFLAGS = 0x80086601, 0x40086602
FS_IOC_FSGETXATTR, FS_IOC_FSSETXATTR = 0x801C581F, 0x401C5820


def mode_of(path, fallback=0o600):
    try:
        return os.stat(path).st_mode & 0o7777
    except OSError:
        return fallback


def chmod(path):
    """The data folder changes by the host's own work: there only another mode shows the call."""
    os.chmod(path, mode_of(path) ^ (0o001 if path.endswith("/data") else 0))


def chown(path):
    found = os.stat(path)
    os.chown(path, found.st_uid, found.st_gid)


def touch(path):
    """Sets the times that it has already, or for the data folder a mark."""
    found = os.stat(path)
    mark_ns = 1_000_000_000_000_000_007
    os.utime(path, ns=(found.st_atime_ns, mark_ns if path.endswith("/data") else found.st_mtime_ns))


def attribute(path):
    os.setxattr(path, "user.hostile", b"1")


# The shared objects of `suite/targets.py`, by the name of their path in the targets.
SHARED = ("data", "config", "neighbour_script", "null", "zero", "binary", "interpreter", "passwd", "operator_home", "base",
          "work", "shared_memory")
CHANGES = {"chmod": chmod, "chown": chown, "utime": touch, "setxattr": attribute}


def changes(verb, change, name):
    @escape(f"metadata.{verb}_{name}", f"{verb} of {name.replace('_', ' ')}", proof="effect", shared=name)
    def attack(t):
        change(t.shared[name])
        return t.shared[name]


for verb, change in CHANGES.items():
    for name in SHARED:
        changes(verb, change, name)


def on_canary(name, summary, change, place="canary", **traits):
    @escape(f"metadata.{name}", summary, **traits)
    def attack(t):
        change(getattr(t, place))
        return "changed"


def on_both(name, summary, change):
    on_canary(name, f"{summary} of a file in the data folder", change)
    on_canary(f"{name}_neighbour", f"{summary} of another runner's file", change, "neighbour")


def by_descriptor(path):
    descriptor = os.open(path, os.O_PATH)
    os.chmod(f"/proc/self/fd/{descriptor}", 0o666)


def by_link(path):
    link = f"{os.environ['TMPDIR']}/chmod-{os.getpid()}"
    os.symlink(path, link)
    os.chmod(link, 0o666)


def empty_path(path):
    descriptor, at_empty_path = os.open(path, os.O_PATH), 0x1000
    calls.call("fchmodat2", descriptor, b"", 0o666, at_empty_path)


def chown_empty_path(path):
    descriptor, at_empty_path = os.open(path, os.O_PATH), 0x1000
    calls.call("fchownat", descriptor, b"", os.getuid(), os.getgid(), at_empty_path)


def times(path):
    text = struct.pack("qqqq", 1, 0, 1, 0)
    calls.call("utimensat", calls.AT_FDCWD, path.encode(), ctypes.c_char_p(text), 0)


def flags(path, get, put, size):
    descriptor = os.open(path, os.O_RDONLY)
    fcntl.ioctl(descriptor, put, fcntl.ioctl(descriptor, get, bytes(size)))


on_both("chmod", "chmod", lambda path: os.chmod(path, 0o666))
on_both("fchmodat2", "fchmodat2", lambda path: calls.call("fchmodat2", calls.AT_FDCWD, path.encode(), 0o666, 0))
on_both("chown", "chown", lambda path: os.chown(path, os.getuid(), os.getgid()))
on_both("lchown", "lchown", lambda path: os.lchown(path, os.getuid(), os.getgid()))
on_both("utimensat", "utimensat", times)
on_both("utime_now", "utime with the current time", lambda path: os.utime(path, None))
on_both("setxattr", "setxattr", lambda path: os.setxattr(path, "user.new", b"1"))
on_both("removexattr", "removexattr", lambda path: os.removexattr(path, "user.canary"))
on_canary("fchmodat_folder", "fchmodat relative to the data folder",
          lambda path: os.chmod(os.path.basename(path), 0o666, dir_fd=os.open(os.path.dirname(path), os.O_PATH)))
on_canary("chmod_by_descriptor", "chmod through a descriptor opened with O_PATH", by_descriptor, inline=True)
on_canary("chmod_by_link", "chmod through a link in the own folder", by_link)
on_canary("chmod_by_root", "chmod through /proc/self/root",
          lambda path: os.chmod(f"/proc/self/root{path}", 0o666), inline=True)
on_canary("fchmodat2_descriptor", "fchmodat2 of a descriptor opened with O_PATH", empty_path)
on_canary("fchownat_descriptor", "fchownat of a descriptor opened with O_PATH", chown_empty_path)
on_canary("lsetxattr", "lsetxattr", lambda path: os.setxattr(path, "user.new", b"1", follow_symlinks=False))
on_canary("getxattr", "read an extended attribute", lambda path: os.getxattr(path, "user.canary"))
on_canary("set_acl", "add a POSIX ACL", lambda path: os.setxattr(path, "system.posix_acl_access", acl()))
on_canary("set_capability", "give a file capabilities",
          lambda path: os.setxattr(path, "security.capability", struct.pack("<IIIII", 0x02000001, 1, 0, 0, 0)))
on_canary("setflags", "set inode flags by ioctl", lambda path: flags(path, FS_IOC_GETFLAGS, FS_IOC_SETFLAGS, 8))
on_canary("fssetxattr", "set inode attributes by ioctl",
          lambda path: flags(path, FS_IOC_FSGETXATTR, FS_IOC_FSSETXATTR, 28))
on_canary("file_setattr", "set inode attributes by file_setattr",
          lambda path: calls.call("file_setattr", calls.AT_FDCWD, path.encode(), ctypes.c_char_p(bytes(24)), 24, 0))
on_canary("setxattrat", "setxattrat", lambda path: calls.call(
    "setxattrat", calls.AT_FDCWD, path.encode(), 0, b"user.new", xattr_args(), 16))
on_canary("removexattrat", "removexattrat",
          lambda path: calls.call("removexattrat", calls.AT_FDCWD, path.encode(), 0, b"user.canary"))
on_canary("old_chmod", "chmod by its own call number", lambda path: calls.call("chmod", path.encode(), 0o666))
for old in ("chown", "lchown"):
    on_canary(f"old_{old}", f"{old} by its own call number",
              lambda path, old=old: calls.call(old, path.encode(), os.getuid(), os.getgid()))
for old in ("utime", "utimes"):
    on_canary(f"old_{old}", f"{old} by its own call number", lambda path, old=old: calls.call(old, path.encode(), None))
on_canary("old_futimesat", "futimesat", lambda path: calls.call("futimesat", calls.AT_FDCWD, path.encode(), None))


def acl():
    entry = struct.Struct("<HHI")
    unnamed = 0xFFFFFFFF
    entries = [(1, 6, unnamed), (2, 6, os.getuid()), (4, 6, unnamed), (16, 6, unnamed), (32, 0, unnamed)]
    return struct.pack("<I", 2) + b"".join(entry.pack(*fields) for fields in entries)


def xattr_args():
    value = ctypes.create_string_buffer(b"1")
    xattr_args.kept = value
    return ctypes.c_char_p(struct.pack("QII", ctypes.addressof(value), 1, 0))


IN_ALL = 0xFFF


def watches(name, summary, path):
    """The suite reads these files all the time (`suite/listeners.py`): who watches the right ones sees it."""
    @escape(f"metadata.inotify_{name}", summary)
    def attack(t):
        descriptor = calls.call("inotify_init1", 0)
        calls.call("inotify_add_watch", descriptor, path(t).encode(), IN_ALL)
        if not select.select([descriptor], [], [], 0.4)[0]:
            raise Refused("a watch, but not of what is outside")
        return f"saw {os.read(descriptor, 256)[16:].strip(bytes(1))}"


watches("data", "watch the data folder", lambda t: t.data)
watches("database", "watch the database", lambda t: f"{t.data}/greenroom.db")
watches("neighbour", "watch another runner's folder", lambda t: t.victim)
watches("home", "watch the operator's home", lambda t: t.home)
watches("config", "watch the configuration", lambda t: t.config)
watches("tmp", "watch a folder in the machine's /tmp", lambda t: t.base)
watches("passwd", "watch a file that every user can read", lambda t: "/etc/passwd")


@escape("metadata.fanotify", "watch a file system by fanotify")
def fanotify(t):
    class_notify, report_fid = 0, 0x200
    return calls.passes("fanotify_init", class_notify | report_fid, os.O_RDONLY)


@escape("metadata.fanotify_data", "watch the data folder by fanotify")
def fanotify_data(t):
    report_fid, mark_add, create = 0x200, 1, 0x100
    group = calls.call("fanotify_init", report_fid, os.O_RDONLY)
    calls.call("fanotify_mark", group, mark_add, ctypes.c_uint64(create), calls.AT_FDCWD, t.data.encode())
    return "watched"


@escape("metadata.dnotify", "watch the data folder by dnotify")
def dnotify(t):
    folder = os.open(t.data, os.O_RDONLY)
    fcntl.fcntl(folder, fcntl.F_NOTIFY, fcntl.DN_CREATE)
    return "watched"


@escape("metadata.lease", "take a lease of a hidden file")
def lease(t):
    fcntl.fcntl(os.open(t.canary, os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_RDLCK)
    return "leased"


@escape("metadata.own_file", "chmod, utime and setxattr of an own file")
def own_file(t):
    path = f"{os.environ['TMPDIR']}/mine"
    with open(path, "w"):
        pass
    os.chmod(path, 0o755)
    os.utime(path, (1, 1))
    return "changed"


@escape("metadata.own_watch", "watch an own folder")
def own_watch(t):
    descriptor = calls.call("inotify_init1", os.O_NONBLOCK)
    return calls.call("inotify_add_watch", descriptor, os.environ["TMPDIR"].encode(), IN_ALL)
