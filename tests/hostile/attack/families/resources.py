"""Resources: memory in all its forms, processes, threads, files and disk. Every attack is bounded.

The limits are those of `suite/stage.py`: `t.memory_mb`, `t.processes` and so on. A memory attack holds 1.75 times
the limit for a while; the suite also measures it from outside.
"""

import ctypes
import mmap
import os
import select
import socket
import threading
import time

from reach import own
from registry import Refused, escape

MIB = 1 << 20
HOLD_S = 0.9


# An MCP server restarts with growing pauses: it tries only those that differ most.
NOT_MCP = ("native", "langbot", "plugin", "module")


def holds(name, summary, fill, kinds=NOT_MCP):
    @escape(f"resources.{name}", summary, alone=True, seconds=12, kinds=kinds)
    def attack(t):
        held, wanted = fill(t, t.memory_mb * 7 // 4)
        if held < t.memory_mb * 3 // 2:
            raise Refused(f"{held} of {wanted} MiB")
        time.sleep(HOLD_S)
        return f"held {held} MiB under a limit of {t.memory_mb} MiB for {HOLD_S} s"


KEPT = []


def malloc(t, mib):
    for _ in range(mib // 16):
        KEPT.append(bytearray(16 * MIB))
        KEPT[-1][::4096] = b"x" * len(KEPT[-1][::4096])
    return mib, mib


def shared(t, mib):
    area = mmap.mmap(-1, mib * MIB)
    for offset in range(0, mib * MIB, 4096):
        area[offset] = 1
    KEPT.append(area)
    return mib, mib


def fill_file(descriptor, mib):
    for index in range(mib):
        os.write(descriptor, b"x" * MIB)
    return mib, mib


def unmapped_memfd(t, mib):
    descriptor = os.memfd_create("held", 0)
    KEPT.append(descriptor)
    return fill_file(descriptor, mib)


def allocated_memfd(t, mib):
    """Allocated without being written."""
    descriptor = os.memfd_create("held", 0)
    os.posix_fallocate(descriptor, 0, mib * MIB)
    KEPT.append(descriptor)
    return mib, mib


def many_memfds(t, mib):
    for _ in range(mib // 8):
        descriptor = os.memfd_create("held", 0)
        fill_file(descriptor, 8)
        KEPT.append(descriptor)
    return mib, mib


def passed_memfd(t, mib):
    """In flight between two sockets: no descriptor table shows it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    KEPT.extend((ours, theirs))
    for _ in range(mib // 16):
        descriptor = os.memfd_create("held", 0)
        fill_file(descriptor, 16)
        socket.send_fds(ours, [b"x"], [descriptor])
        os.close(descriptor)
    return mib, mib


def shared_memory_file(t, mib):
    """Deleted, and held open."""
    path = f"/dev/shm/hostile-{t.kind}-{t.run}"
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    os.unlink(path)
    KEPT.append(descriptor)
    return fill_file(descriptor, mib)


def tmp_file(t, mib):
    """Where the private /tmp is memory."""
    if not is_memory("/tmp"):
        raise Refused("/tmp is not memory")
    descriptor = os.open("/tmp", os.O_TMPFILE | os.O_RDWR)
    KEPT.append(descriptor)
    return fill_file(descriptor, mib)


def is_memory(path):
    try:
        with open("/proc/self/mounts") as mounts:
            return any(line.split()[1:3] == [path, "tmpfs"] for line in mounts)
    except OSError:
        return True


def locked(t, mib):
    libc = ctypes.CDLL(None, use_errno=True)
    area = mmap.mmap(-1, mib * MIB, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    KEPT.append(area)
    address = ctypes.addressof(ctypes.c_char.from_buffer(area))
    if libc.mlock(ctypes.c_void_p(address), ctypes.c_size_t(mib * MIB)) != 0:
        raise OSError(ctypes.get_errno(), "mlock")
    return mib, mib


def children(t, mib):
    """Each child stays under the limit; together they do not."""
    count, (reader, writer) = 6, os.pipe()
    for _ in range(count):
        if os.fork() == 0:
            malloc(t, mib // count)
            os.write(writer, b"x")
            time.sleep(10)
            os._exit(0)
    filled = 0
    while filled < count and select.select([reader], [], [], 5)[0]:
        filled += len(os.read(reader, count))
    return mib * filled // count, mib


def pipes(t, mib):
    held = 0
    while held < mib * MIB:
        reader, writer = os.pipe()
        KEPT.extend((reader, writer))
        os.set_blocking(writer, False)
        try:
            f_setpipe_sz = 1031
            import fcntl
            fcntl.fcntl(writer, f_setpipe_sz, MIB)
        except OSError:
            pass
        written = os.write(writer, b"x" * MIB)
        held += written
        if written <= 4096:
            break
    return held // MIB, mib


def socket_buffers(t, mib):
    held, piece = 0, b"x" * 65536
    while held < mib * MIB and len(KEPT) < 12_000:
        ours, theirs = socket.socketpair()
        KEPT.extend((ours, theirs))
        ours.setblocking(False)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 24)
        try:
            while True:
                held += ours.send(piece)
        except BlockingIOError:
            pass
    return held // MIB, mib


holds("memory_malloc", "allocate more memory than the limit", malloc, kinds=None)
holds("memory_shared", "map more shared memory than the limit", shared)
holds("memory_memfd", "fill an unmapped memfd beyond the limit", unmapped_memfd)
holds("memory_memfd_allocated", "allocate an unmapped memfd beyond the limit", allocated_memfd)
holds("memory_memfd_many", "fill many memfds beyond the limit", many_memfds)
holds("memory_memfd_passed", "hide memfds in a socket's queue", passed_memfd, kinds=None)
holds("memory_shm", "fill a deleted file in /dev/shm beyond the limit", shared_memory_file)
holds("memory_tmp", "fill a deleted file in a /tmp that is memory", tmp_file)
holds("memory_locked", "lock more memory than the limit", locked)
holds("memory_children", "spread memory over children", children)
holds("memory_pipes", "fill pipes beyond the limit", pipes)
holds("memory_sockets", "fill socket buffers beyond the limit", socket_buffers)


@escape("resources.fork_bomb", "start more processes than the limit", alone=True, seconds=10)
def fork_bomb(t):
    started = 0
    for _ in range(4 * t.processes):
        try:
            if os.fork() == 0:
                time.sleep(4)
                os._exit(0)
        except OSError:
            break
        started += 1
    if started < 2 * t.processes:
        raise Refused(f"{started} processes")
    time.sleep(1)
    return f"{started} processes under a limit of {t.processes}"


@escape("resources.threads", "start very many threads", alone=True, seconds=10)
def threads(t):
    threading.stack_size(65536)
    done, started = threading.Event(), 0
    try:
        while started < t.threads_tried:
            threading.Thread(target=done.wait, args=(5,), daemon=True).start()
            started += 1
    except (RuntimeError, OSError, MemoryError):
        pass
    if started < t.threads_tried:
        raise Refused(f"{started} threads")
    time.sleep(1)
    return f"{started} threads"


@escape("resources.open_files", "open very many files", alone=True, seconds=10)
def open_files(t):
    import resource
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 17, 1 << 17))
    except (OSError, ValueError):
        pass
    opened = 0
    try:
        while opened < 50_000:
            os.open("/dev/null", os.O_RDONLY)
            opened += 1
    except OSError as error:
        raise Refused(f"{opened} files, then {error.strerror}")
    return f"{opened} files"


# The quotas of a method cannot be configured, and are too large to try.
WITH_QUOTAS = ("native", "langbot", "plugin", "mcp")


def fills(name, summary, folder):
    @escape(f"resources.{name}", summary, alone=True, seconds=15, kinds=WITH_QUOTAS)
    def attack(t):
        path = f"{folder(t)}/filler-{t.run}"
        descriptor, written = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), 0
        try:
            while written < t.disk_tried_mb:
                os.write(descriptor, b"x" * MIB)
                written += 1
            time.sleep(HOLD_S)
        finally:
            os.close(descriptor)
            os.unlink(path)
        return f"{written} MiB under a limit of {t.disk_mb}"


fills("disk_own", "fill the disk from the own folder", lambda t: t.own_dir)
fills("disk_tmp", "fill the disk from the temporary folder", lambda t: os.environ["TMPDIR"])
fills("disk_home", "fill the disk from HOME", lambda t: os.environ["HOME"])


@escape("resources.disk_deleted", "fill the disk with a deleted file", alone=True, seconds=15, kinds=WITH_QUOTAS[:3])
def disk_deleted(t):
    descriptor = os.open(os.environ["TMPDIR"], os.O_TMPFILE | os.O_WRONLY, 0o600)
    for _ in range(t.disk_tried_mb):
        os.write(descriptor, b"x" * MIB)
    time.sleep(HOLD_S)
    return f"{t.disk_tried_mb} MiB under a limit of {t.disk_mb}"


@escape("resources.inodes", "create very many files", alone=True, seconds=15, kinds=WITH_QUOTAS)
def inodes(t):
    folder = own(t)
    os.mkdir(folder)
    made = 0
    try:
        while made < t.files_tried:
            os.close(os.open(f"{folder}/{made}", os.O_CREAT | os.O_WRONLY))
            made += 1
        time.sleep(HOLD_S)
    finally:
        for number in range(made):
            os.unlink(f"{folder}/{number}")
    return f"{made} files under a limit of {t.files_max}"


@escape("resources.deep_tree", "leave a folder too deep to remove", proof="effect")
def deep_tree(t):
    os.chdir(os.environ["TMPDIR"])
    for _ in range(1200):
        os.mkdir("deep")
        os.chdir("deep")
    return "left"


@escape("resources.closed_tree", "leave a folder that its owner cannot list", proof="effect")
def closed_tree(t):
    os.makedirs(f"{own(t)}/a/b")
    os.chmod(f"{own(t)}/a", 0)
    os.chmod(own(t), 0)
    return "left"


@escape("resources.sparse_file", "create a sparse file of a terabyte")
def sparse_file(t):
    with open(own(t), "wb") as file:
        file.truncate(1 << 40)
    os.unlink(own(t))
    return "created"


@escape("resources.file_locks", "take thousands of file locks")
def file_locks(t):
    import fcntl
    taken = 0
    with open(own(t), "w") as file:
        while taken < 3_000:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, taken * 2)
            taken += 1
    return f"{taken} locks"


@escape("resources.pending_signals", "queue very many signals to itself")
def pending_signals(t):
    import signal
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
    queued, sigqueue, pid = 0, ctypes.CDLL(None).sigqueue, os.getpid()
    while queued < 200_000:
        if sigqueue(pid, signal.SIGRTMIN, 0) != 0:
            raise Refused(f"{queued} signals")
        queued += 1
    return f"{queued} signals"


@escape("resources.inotify_watches", "use up the user's inotify instances")
def inotify_watches(t):
    import calls
    made = 0
    try:
        while made < 5000:
            KEPT.append(calls.call("inotify_init1", 0))
            made += 1
    except OSError as error:
        raise Refused(f"{made} instances, then {error.strerror}")
    return f"{made} instances"
