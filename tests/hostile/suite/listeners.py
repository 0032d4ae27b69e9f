"""Sockets that must not hear anything. Every listener records the labels that it receives, with its own name."""

import os
import shutil
import socket
import subprocess
import threading

STREAM, DATAGRAM, SEQPACKET = socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET
UNIX, INET, INET6 = socket.AF_UNIX, socket.AF_INET, socket.AF_INET6
OTHER_SOCKETS = ("/var/run/docker.sock", "/run/dbus/system_bus_socket", "/var/run/postgresql/.s.PGSQL.5432",
                 "/run/systemd/journal/stdout")


class Listeners:
    def __init__(self, place):
        self.place, self.heard, self.sockets, self.names, self.tmux = place, {}, [], {}, None
        run, home = place.run, place.home
        self.pathname("home", home / "s.sock")
        self.pathname("tmp", place.base / "t.sock")
        self.pathname("data", place.data / "d.sock")
        self.pathname("neighbour", place.work / "victim/n.sock")
        self.pathname("open", place.base / "open.sock", mode=0o666)
        self.pathname("packets", home / "p.sock", SEQPACKET)
        self.pathname("datagram", place.base / "dg.sock", DATAGRAM, 0o666)
        self.pathname("gift", place.base / "gift.sock", mode=0o666)
        if os.access("/run", os.W_OK):
            self.pathname("run", f"/run/gh-{run}.sock")
        for name, kind in (("abstract", STREAM), ("abstract_datagram", DATAGRAM)):
            self.names[name] = f"gh-{run}-{name}"
            self.listen(name, UNIX, kind, "\0" + self.names[name])
        self.names["home_short"] = self.names["home"]
        self.start_tmux()
        self.own_address = own_address()
        self.tcp_port = self.tcp()
        self.listed_port = self.listen("tcp_listed", INET, STREAM, ("127.0.0.1", 0)).getsockname()[1]
        self.udp_port = self.listen("udp", INET, DATAGRAM, ("127.0.0.1", 0)).getsockname()[1]
        self.optional("udp6", INET6, DATAGRAM, ("::1", self.udp_port))
        self.optional("udp_lite", INET, DATAGRAM, ("127.0.0.1", self.udp_port), 136)

    def pathname(self, name, path, kind=STREAM, mode=0o600):
        self.names[name] = str(path)
        self.listen(name, UNIX, kind, str(path))
        self.place.own(path, mode)

    def tcp(self):
        port = self.listen("tcp", INET, STREAM, ("127.0.0.1", 0)).getsockname()[1]
        self.optional("tcp_alias", INET, STREAM, ("127.1.2.3", port))
        self.optional("tcp6", INET6, STREAM, ("::1", port))
        if self.own_address:
            self.optional("tcp_own", INET, STREAM, (self.own_address, port))
        return port

    def optional(self, *arguments):
        try:
            self.listen(*arguments)
        except OSError:
            pass  # Not on this machine: nothing can be reached there.

    def listen(self, name, family, kind, address, protocol=0):
        listener = socket.socket(family, kind, protocol)
        listener.bind(address)
        if kind != DATAGRAM:
            listener.listen(100)
        self.sockets.append(listener)
        serve = self.datagrams if kind == DATAGRAM else self.connections
        threading.Thread(target=serve, args=(name, listener), daemon=True).start()
        return listener

    def datagrams(self, name, listener):
        while True:
            try:
                self.note(name, listener.recv(4096))
            except OSError:
                return

    def connections(self, name, listener):
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self.connection, args=(name, peer), daemon=True).start()

    def connection(self, name, peer):
        with peer:
            peer.settimeout(3)
            try:
                label = peer.recv(4096)
                self.note(name, label)
                if name == "gift" and label:
                    kind, escape = label.decode().split("/", 1)
                    with open(self.place.data / "canary" / kind / escape, "rb") as file:
                        socket.send_fds(peer, [b"x"], [file.fileno()])
            except OSError:
                pass

    def note(self, name, label):
        self.heard[label.split(b"\0")[0].decode(errors="replace")] = name

    def start_tmux(self):
        program = shutil.which("tmux")
        if not program:
            return
        path = str(self.place.home / "tmux.sock")
        command = [program, "-S", path, "-f", "/dev/null", "new-session", "-d", "sleep 600"]
        environment = {"HOME": str(self.place.home), "PATH": "/usr/bin:/bin", "TERM": "xterm", "LANG": "C.UTF-8"}
        done = subprocess.run(command, env=environment, capture_output=True, cwd="/", **self.place.as_user())
        if done.returncode == 0:
            self.names["tmux"], self.tmux = path, (program, path, environment)

    def close(self):
        if self.tmux:
            program, path, environment = self.tmux
            subprocess.run([program, "-S", path, "kill-server"], env=environment, capture_output=True, cwd="/",
                           **self.place.as_user())
        for listener in self.sockets:
            try:
                listener.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            listener.close()
        if "run" in self.names:
            os.unlink(self.names["run"])


class Caller:
    """Connects again and again to a port on which an attacker should not be able to listen."""

    def __init__(self, port, heard):
        self.port, self.heard, self.stopped = port, heard, threading.Event()
        self.thread = threading.Thread(target=self.call, daemon=True)
        self.thread.start()

    def call(self):
        while not self.stopped.wait(0.05):
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=1) as peer:
                    if label := peer.recv(4096):
                        self.heard[label.decode()] = "connected from outside"
            except OSError:
                pass

    def stop(self):
        self.stopped.set()
        self.thread.join(3)


class Reader:
    """Reads files all the time, so that a watch of them sees something. Changes nothing."""

    def __init__(self, paths):
        self.paths, self.stopped = paths, threading.Event()
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        while not self.stopped.wait(0.05):
            for path in self.paths:
                try:
                    with open(path, "rb") as file:
                        file.read(1)
                except OSError:
                    pass  # The folder is being removed.

    def stop(self):
        self.stopped.set()
        self.thread.join(3)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def own_address():
    """An address of this machine besides loopback. No packet is sent."""
    try:
        with socket.socket(type=DATAGRAM) as peer:
            peer.connect(("192.0.2.1", 9))
            address = peer.getsockname()[0]
            return None if address.startswith("127.") else address
    except OSError:
        return None
