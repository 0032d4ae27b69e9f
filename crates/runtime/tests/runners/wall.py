"""Attacks on what a process was not given, by path: its metadata, watching it, and sockets."""
import ctypes, errno, os, socket, threading


def attempt(action):
    try:
        action()
        return "ok"
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))


def watch(path):
    libc = ctypes.CDLL(None, use_errno=True)
    watcher = libc.inotify_init1(0)
    if watcher < 0 or libc.inotify_add_watch(watcher, path.encode(), 0xFFF) < 0:
        raise OSError(ctypes.get_errno(), path)
    os.close(watcher)


def mode_by_descriptor(path):
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fchmod(descriptor, 0o777)
    finally:
        os.close(descriptor)


def connect(address):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_UNIX, kind) as connection:
            try:
                connection.connect(address)
                return
            except OSError as error:
                # The socket exists, and is of the other kind.
                if error.errno != errno.EPROTOTYPE:
                    raise


def metadata(path):
    return {
        "chmod": attempt(lambda: os.chmod(path, 0o777)),
        "fchmod": attempt(lambda: mode_by_descriptor(path)),
        "chown": attempt(lambda: os.chown(path, os.getuid(), os.getgid())),
        "utime": attempt(lambda: os.utime(path, (1, 1))),
        "setxattr": attempt(lambda: os.setxattr(path, "user.wall", b"x")),
        "inotify": attempt(lambda: watch(path)),
    }


def own_socket():
    server = socket.socket(socket.AF_UNIX)
    server.bind("own-socket")
    server.listen()
    thread = threading.Thread(target=server.accept)
    thread.start()
    connect("own-socket")
    thread.join()
    os.unlink("own-socket")


def named(address):
    return "\0" + address[1:] if address.startswith("@") else address


def attack(paths, sockets):
    return {
        "metadata": {path: metadata(path) for path in paths},
        "sockets": {address: attempt(lambda: connect(named(address))) for address in sockets},
    }


def work():
    with open("own-file", "w") as file:
        file.write("x")
    return {**metadata("own-file"), "socket": attempt(own_socket)}
