"""Ways around a path check: links, renames, handles, descriptors; and changes of hidden files."""

import ctypes
import os
import struct

import calls
from reach import append, own, read
from registry import INHERITED, Refused, escape


@escape("paths.symlink", "read a hidden file through a symbolic link in the own folder")
def symlink(t):
    link = own(t)
    os.symlink(t.canary, link)
    return read(link)


@escape("paths.symlink_folder", "read a hidden file through a link to its folder")
def symlink_folder(t):
    link = own(t)
    os.symlink(os.path.dirname(t.canary), link)
    return read(f"{link}/{t.name}")


@escape("paths.symlink_of_program", "make the host read a link in the own folder as its own file", inline=True)
def symlink_magic(t):
    link = own(t)
    os.symlink(f"/proc/{t.host_pid}/root{t.canary}", link)
    return read(link)


@escape("paths.hard_link", "link a hidden file into the own folder")
def hard_link(t):
    os.link(t.canary, own(t))
    return read(own(t))


@escape("paths.hard_link_neighbour", "link another runner's file into the own folder")
def hard_link_neighbour(t):
    os.link(t.neighbour, own(t))
    return read(own(t))


@escape("paths.rename_out", "move a hidden file into the own folder")
def rename_out(t):
    os.rename(t.canary, own(t))
    return read(own(t))


@escape("paths.rename_over", "replace a hidden file by an own one")
def rename_over(t):
    with open(own(t), "w") as file:
        file.write("mine")
    os.rename(own(t), t.canary)
    return "replaced"


@escape("paths.rename_exchange", "exchange a hidden file with an own one")
def rename_exchange(t):
    with open(own(t), "w") as file:
        file.write("mine")
    exchange = 2
    if calls.libc.renameat2(-100, own(t).encode(), -100, t.canary.encode(), exchange) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return read(own(t))


@escape("paths.dot_dot", "leave the own folder by `..`")
def dot_dot(t):
    return read("../" * 30 + t.canary.lstrip("/"))


@escape("paths.dot_dot_from_private", "leave the private folder by `..`")
def dot_dot_from_private(t):
    os.chdir(os.environ["TMPDIR"])
    return read("../" * 30 + t.canary.lstrip("/"))


@escape("paths.proc_self_root", "read a hidden file through /proc/self/root", inline=True)
def proc_self_root(t):
    return read(f"/proc/self/root{t.canary}")


@escape("paths.proc_self_cwd", "read a hidden file through /proc/self/cwd", inline=True)
def proc_self_cwd(t):
    return read(f"/proc/self/cwd/{'../' * 30}{t.canary.lstrip('/')}")


@escape("paths.proc_thread_root", "read a hidden file through /proc/thread-self/root", inline=True)
def proc_thread_root(t):
    return read(f"/proc/thread-self/root{t.canary}")


@escape("paths.o_path", "open a hidden file with O_PATH and reopen it", inline=True)
def o_path(t):
    descriptor = os.open(t.canary, os.O_PATH)
    return read(f"/proc/self/fd/{descriptor}")


@escape("paths.o_path_folder", "open a hidden folder with O_PATH and read beneath it", inline=True)
def o_path_folder(t):
    folder = os.open(t.data, os.O_PATH | os.O_DIRECTORY)
    descriptor = os.open("admin-token", os.O_RDONLY, dir_fd=folder)
    return os.read(descriptor, 100)


@escape("paths.chdir", "enter a hidden folder and read in it")
def chdir(t):
    os.chdir(os.path.dirname(t.canary))
    return read(t.name)


@escape("paths.fchdir", "enter a hidden folder through a descriptor and read in it")
def fchdir(t):
    os.fchdir(os.open(os.path.dirname(t.canary), os.O_PATH))
    return read(t.name)


@escape("paths.openat2", "read a hidden file with openat2")
def openat2(t):
    how = struct.pack("QQQ", os.O_RDONLY, 0, 0)
    descriptor = calls.call("openat2", calls.AT_FDCWD, t.canary.encode(), ctypes.c_char_p(how), len(how))
    return os.read(descriptor, 100)


@escape("paths.handle", "open a hidden file by its handle")
def handle(t):
    bytes_max, mount = 128, ctypes.c_int()
    buffer = ctypes.create_string_buffer(struct.pack("Ii", bytes_max, 0) + bytes(bytes_max))
    calls.call("name_to_handle_at", calls.AT_FDCWD, t.canary.encode(), buffer, ctypes.byref(mount), 0)
    folder = os.open(os.environ["TMPDIR"], os.O_RDONLY)
    return os.read(calls.call("open_by_handle_at", folder, buffer, os.O_RDONLY), 100)


@escape("paths.handle_guessed", "open a hidden file by a guessed handle")
def handle_guessed(t):
    fid_ino32_gen = 1
    buffer = ctypes.create_string_buffer(struct.pack("IiII", 8, fid_ino32_gen, t.canary_inode, 0))
    folder = os.open(os.environ["TMPDIR"], os.O_RDONLY)
    return os.read(calls.call("open_by_handle_at", folder, buffer, os.O_RDONLY), 100)


@escape("paths.inherited_descriptors", "use a descriptor that the host left open", inline=True)
def inherited_descriptors(t):
    found = [path for number, path in INHERITED.items() if number > 2 and path.startswith("/") and "/attack" not in path]
    if not found:
        raise Refused("none leads to a file of the host")
    return found


@escape("paths.bind_mount", "mount a hidden folder into the own folder")
def bind_mount(t):
    os.mkdir(own(t))
    ms_bind = 4096
    calls.call("mount", os.path.dirname(t.canary).encode(), own(t).encode(), None, ms_bind, None)
    return read(f"{own(t)}/{t.name}")


@escape("paths.chroot", "change the root to reach a hidden file")
def chroot(t):
    os.chroot(os.path.dirname(t.canary))
    return read(f"/{t.name}")


@escape("paths.exec_reader", "let a program of the system read a hidden file")
def exec_reader(t):
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.dup2(writer, 1)
        os.execv("/bin/cat", ["cat", t.canary])
    os.close(writer)
    return os.read(reader, 100) or refuse("it read nothing")


@escape("paths.memfd_exec_reader", "let a program in nameless memory read a hidden file")
def memfd_exec_reader(t):
    memory = os.memfd_create("reader", 0)
    with open("/bin/cat", "rb") as file:
        os.write(memory, file.read())
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.dup2(writer, 1)
        os.execve(memory, ["cat", t.canary], {})
    os.close(writer)
    return os.read(reader, 100) or refuse("it read nothing")


def refuse(why):
    raise Refused(why)


@escape("paths.append", "write to a hidden file")
def write(t):
    return append(t.canary, "mine")


@escape("paths.append_neighbour", "write to another runner's file")
def write_neighbour(t):
    return append(t.neighbour, "mine")


@escape("paths.truncate", "truncate a hidden file")
def truncate(t):
    os.truncate(t.canary, 1)
    return "truncated"


@escape("paths.unlink", "delete a hidden file")
def unlink(t):
    os.unlink(t.canary)
    return "deleted"


@escape("paths.unlink_neighbour", "delete another runner's file")
def unlink_neighbour(t):
    os.unlink(t.neighbour)
    return "deleted"


def makes(name, summary, make):
    """Creates something beside the hidden file; `suite/witnesses.py` looks for it."""
    @escape(f"paths.{name}", summary, proof="effect")
    def attack(t):
        make(f"{t.canary}.made")
        return "created"


makes("create", "create a file in the data folder", lambda path: os.close(os.open(path, os.O_CREAT | os.O_WRONLY)))
makes("mkdir", "create a folder in the data folder", os.mkdir)
makes("mkfifo", "create a pipe in the data folder", os.mkfifo)
makes("symlink_into", "create a link in the data folder", lambda path: os.symlink("/etc/passwd", path))
makes("mknod", "create a device in the data folder", lambda path: os.mknod(path, 0o020666, os.makedev(1, 3)))


@escape("paths.link_tmpfile", "link a nameless file into the data folder", proof="effect", inline=True)
def link_tmpfile(t):
    descriptor = os.open(os.environ["TMPDIR"], os.O_TMPFILE | os.O_RDWR)
    at_symlink_follow, link = 0x400, f"/proc/self/fd/{descriptor}"
    calls.call("linkat", calls.AT_FDCWD, link.encode(), calls.AT_FDCWD, f"{t.canary}.made".encode(), at_symlink_follow)
    return "linked"


@escape("paths.tmpfile", "create a nameless file in the data folder")
def tmpfile(t):
    return os.open(os.path.dirname(t.canary), os.O_TMPFILE | os.O_RDWR)


@escape("paths.lock", "lock a file of the host")
def lock(t):
    import fcntl
    descriptor = os.open(t.canary, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return "locked"


@escape("paths.stat_size", "learn size and times of a file in the data folder")
def stat_size(t):
    return os.stat(f"{t.data}/greenroom.db")


@escape("paths.exists", "learn whether a path exists beside the own folder")
def exists(t):
    if not os.path.lexists(f"{t.home}/.ssh/id_ed25519"):
        raise Refused("it seems not to")
    return "it exists"


@escape("paths.file_system_size", "learn how full the disk is")
def file_system_size(t):
    return os.statvfs(os.environ["TMPDIR"]).f_bavail
