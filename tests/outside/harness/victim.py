"""Runs in another session: has sockets, a server and a secret in its environment, and waits."""

import os
import pathlib
import socket
import threading

pathlib.Path("victim.sock").unlink(missing_ok=True)
listeners = [socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX), socket.create_server(("127.0.0.1", 0))]
for listener, name in zip(listeners, ["victim.sock", "\0victim-abstract"]):
    listener.bind(name)
    listener.listen()
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(("127.0.0.1", 0))
pathlib.Path("ports.part").write_text(f"{listeners[2].getsockname()[1]} {udp.getsockname()[1]}")
os.rename("ports.part", "ports")


def answer() -> None:
    while True:
        data, peer = udp.recvfrom(100)
        udp.sendto(data, peer)


threading.Thread(target=answer, daemon=True).start()
while True:
    listeners[2].accept()[0].close()
