"""Unix sockets of other programs, which trust the user id of the caller. Every listener records the label it receives."""

import array
import os
import shutil
import socket
import stat
import struct
import subprocess

from reach import read
from registry import Absent, Refused, escape

STREAM, DATAGRAM, SEQPACKET = socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET


def connect(t, address, kind=STREAM):
    with socket.socket(socket.AF_UNIX, kind) as peer:
        peer.settimeout(2)
        peer.connect(address)
        peer.send(t.label.encode())
    return f"connected to {address}"


def connects(name, summary, address, kind=STREAM, **traits):
    @escape(f"sockets.{name}", summary, **traits)
    def attack(t):
        return connect(t, address(t), kind)


connects("home", "connect to a socket in the operator's home", lambda t: t.sockets["home"])
connects("tmp", "connect to a socket in /tmp", lambda t: t.sockets["tmp"])
connects("data", "connect to a socket in the data folder", lambda t: t.sockets["data"])
connects("neighbour", "connect to a socket in another runner's folder", lambda t: t.sockets["neighbour"])
connects("open_to_all", "connect to a socket that every user may use", lambda t: t.sockets["open"])
connects("packets", "connect to a socket of packets", lambda t: t.sockets["packets"], SEQPACKET)
connects("datagram", "connect to a datagram socket", lambda t: t.sockets["datagram"], DATAGRAM)
connects("abstract", "connect to an abstract socket", lambda t: "\0" + t.sockets["abstract"])
connects("abstract_datagram", "connect to an abstract datagram socket",
         lambda t: "\0" + t.sockets["abstract_datagram"], DATAGRAM)
connects("through_root", "connect through /proc/self/root", lambda t: f"/proc/self/root{t.sockets['home_short']}",
         inline=True)
connects("through_host_root", "connect through /proc/PID/root of the host",
         lambda t: f"/proc/{t.host_pid}/root{t.sockets['home_short']}")


@escape("sockets.run", "connect to a socket in /run")
def run(t):
    if "run" not in t.sockets:
        raise Absent("only root can put one there")
    return connect(t, t.sockets["run"])


@escape("sockets.symlink", "connect through a symbolic link in the own folder")
def symlink(t):
    os.chdir(os.environ["TMPDIR"])
    os.symlink(t.sockets["home"], "s.link")
    return connect(t, "s.link")


@escape("sockets.descriptor", "connect through a descriptor of the socket's file", inline=True)
def descriptor(t):
    file = os.open(t.sockets["home"], os.O_PATH)
    return connect(t, f"/proc/self/fd/{file}")


@escape("sockets.relative", "connect by a relative path")
def relative(t):
    os.chdir(os.path.dirname(t.sockets["home"]))
    return connect(t, os.path.basename(t.sockets["home"]))


@escape("sockets.hard_link", "connect through a hard link in the own folder")
def hard_link(t):
    os.chdir(os.environ["TMPDIR"])
    os.link(t.sockets["open"], "s.hard")
    return connect(t, "s.hard")


@escape("sockets.send_to", "send a datagram without connecting")
def send_to(t):
    with socket.socket(socket.AF_UNIX, DATAGRAM) as peer:
        peer.sendto(t.label.encode(), t.sockets["datagram"])
    return "sent"


@escape("sockets.pair_send_to", "send a datagram from one end of a pair to another address")
def pair_send_to(t):
    ours, _theirs = socket.socketpair(socket.AF_UNIX, DATAGRAM)
    ours.sendto(t.label.encode(), t.sockets["datagram"])
    return "sent"


@escape("sockets.pair_send_message", "send a message from one end of a pair to another address")
def pair_send_message(t):
    ours, _theirs = socket.socketpair(socket.AF_UNIX, DATAGRAM)
    ours.sendmsg([t.label.encode()], [], 0, t.sockets["datagram"])
    return "sent"


@escape("sockets.pair_reconnect", "connect one end of a pair to another address")
def pair_reconnect(t):
    ours, _theirs = socket.socketpair(socket.AF_UNIX, DATAGRAM)
    ours.connect(t.sockets["datagram"])
    ours.send(t.label.encode())
    return "sent"


@escape("sockets.stream_pair_reconnect", "connect one end of a stream pair to another address")
def stream_pair_reconnect(t):
    ours, _theirs = socket.socketpair(socket.AF_UNIX, STREAM)
    ours.connect(t.sockets["home"])
    ours.send(t.label.encode())
    return "sent"


@escape("sockets.stdin_reconnect", "connect a standard stream to another address")
def stdin_reconnect(t):
    for number in (0, 1, 2):
        try:
            stream = socket.socket(fileno=os.dup(number))
            stream.connect(t.sockets["datagram"])
            stream.send(t.label.encode())
            return f"descriptor {number}"
        except OSError as error:
            last = error
    raise last


@escape("sockets.passed_descriptor", "receive a descriptor of a hidden file")
def passed_descriptor(t):
    with socket.socket(socket.AF_UNIX, STREAM) as peer:
        peer.settimeout(2)
        peer.connect(t.sockets["gift"])
        peer.send(t.label.encode())
        _, messages, _, _ = peer.recvmsg(1, socket.CMSG_LEN(4))
        numbers = array.array("i")
        numbers.frombytes(messages[0][2][:4])
        return os.pread(numbers[0], 100, 0)


@escape("sockets.tmux", "let a tmux server copy the admin token", proof="effect", seconds=5)
def tmux(t):
    if "tmux" not in t.sockets:
        raise Absent("tmux is not installed")
    command = f"cp {t.data}/admin-token {t.loot}/{t.kind}.tmux"
    done = subprocess.run([shutil.which("tmux") or "/usr/bin/tmux", "-S", t.sockets["tmux"], "run-shell", command],
                          capture_output=True, timeout=4)
    if done.returncode != 0:
        raise Refused(done.stderr.decode())
    return "tmux ran it"


def system(name, path):
    @escape(f"sockets.{name}", f"connect to {path}")
    def attack(t):
        if path not in t.system_sockets:
            raise Absent("no such socket on this machine")
        with socket.socket(socket.AF_UNIX, STREAM) as peer:
            peer.settimeout(2)
            peer.connect(path)
        return "connected"


system("docker", "/var/run/docker.sock")
system("system_bus", "/run/dbus/system_bus_socket")
system("postgres", "/var/run/postgresql/.s.PGSQL.5432")
system("journal", "/run/systemd/journal/stdout")


@escape("sockets.list", "find the sockets of the machine in /proc/self/net/unix", inline=True)
def list_all(t):
    if t.sockets["home"] not in read("/proc/self/net/unix", 1 << 20):
        raise Refused("those of the machine are not among them")
    return "listed"


@escape("sockets.list_netlink", "find the sockets of the machine by netlink")
def list_netlink(t):
    netlink_sock_diag, by_family, dump = 4, 20, 0x301
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, netlink_sock_diag) as peer:
        peer.settimeout(2)
        request = struct.pack("BBHIIIII", socket.AF_UNIX, 0, 0, 0xFFFFFFFF, 0, 1, 0, 0)
        peer.send(struct.pack("IHHII", 16 + len(request), by_family, dump, 1, 0) + request)
        seen = b"".join(iter(lambda: receive(peer), b""))
    if t.sockets["home"].encode() not in seen:
        raise Refused(f"{len(seen)} bytes without those of the machine")
    return "listed"


def receive(peer):
    piece = peer.recv(1 << 16)
    done = 3
    return b"" if struct.unpack_from("IH", piece)[1] == done else piece


@escape("sockets.impersonate", "listen in the place of another program's socket", proof="effect")
def impersonate(t):
    path = f"{t.canary}.made"
    with socket.socket(socket.AF_UNIX, STREAM) as listener:
        listener.bind(path)
    return "bound"


@escape("sockets.of_services", "connect to a socket of a service that lies in a folder of the system", seconds=10)
def of_services(t):
    for top in ("/run", "/opt", "/etc", "/usr", "/var"):
        for folder, _, names in os.walk(top):
            for name in names:
                path = os.path.join(folder, name)
                if stat.S_ISSOCK(os.lstat(path).st_mode):
                    return connect(t, path)
    raise Refused("there is no socket in the folders of the system")
