"""A runner whose wire is held by a test: bytes are copied between stdio and the socket that the test listens at."""
import os, socket, sys, threading

wire = socket.socket(socket.AF_UNIX)
wire.connect(sys.argv[1])


def copy(read, write):
    while data := read(1 << 16):
        while data:
            data = data[write(data):]
    os._exit(0)


threading.Thread(target=copy, args=(lambda size: os.read(0, size), wire.send)).start()
copy(wire.recv, lambda data: os.write(1, data))
