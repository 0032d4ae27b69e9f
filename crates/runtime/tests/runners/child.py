"""A program for one call: its verb says what it tries, and it tells on stdout as JSON what came of it."""
import json, os, signal, socket, subprocess, sys, time


def attempt(action):
    try:
        return "ok: " + str(action())[:80]
    except Exception as error:
        return type(error).__name__


def tell(value):
    print(json.dumps(value), flush=True)


def read(path):
    with open(path) as file:
        return file.read()


def write(path):
    with open(path, "w") as file:
        return file.write("new")


def connect(family, kind, address, protocol=0):
    with socket.socket(family, kind, protocol) as connection:
        connection.settimeout(5)
        connection.connect(address)


def daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(1000)
        os._exit(0)


verb, *args = sys.argv[1:]
if verb == "echo":
    tell({"read": sys.stdin.read(), "environment": sorted(os.environ), "args": args})
elif verb in ("read", "write", "list"):
    action = {"read": read, "write": write, "list": os.listdir}[verb]
    tell({path: attempt(lambda: action(path)) for path in os.environ["PATHS"].split(":")})
elif verb == "where":
    tell({"is_home": os.getcwd() == os.environ["HOME"], "write": attempt(lambda: write("new"))})
elif verb == "who":
    tell({"uid": os.getuid(), "gid": os.getgid(), "groups": os.getgroups()})
elif verb == "sockets":
    tcp, unix = int(args[0]), args[1]
    here = ("127.0.0.1", tcp)
    tell({
        "tcp": attempt(lambda: connect(socket.AF_INET, socket.SOCK_STREAM, here)),
        "mptcp": attempt(lambda: connect(socket.AF_INET, socket.SOCK_STREAM, here, 262)),
        "fast": attempt(lambda: socket.socket().sendto(b"x", socket.MSG_FASTOPEN, here)),
        "udp": attempt(lambda: connect(socket.AF_INET, socket.SOCK_DGRAM, here)),
        "unix": attempt(lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, unix)),
        "abstract": attempt(lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + unix)),
        "raw": attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)),
        "addressed_pair": attempt(lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)),
        "pair": attempt(lambda: [end.close() for end in socket.socketpair()]),
    })
elif verb == "python":
    import asyncio, concurrent.futures, ctypes, tempfile
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        threads = sum(pool.map(len, ["a", "bb", "ccc"]))
    callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda x: x + 1)
    with tempfile.NamedTemporaryFile() as file:
        temporary = file.write(b"x")
    tell({
        "threads": threads,
        "callback": callback(41),
        "temporary": temporary,
        "child": subprocess.check_output([sys.executable, "-c", "print(6 * 7)"]).decode().strip(),
        "shell": subprocess.check_output("echo error >/dev/stderr; echo fine", shell=True).decode().strip(),
        "async": asyncio.run(asyncio.sleep(0, "done")),
    })
elif verb == "fork":
    while True:
        try:
            os.fork()
        except OSError:
            pass
elif verb == "eat":
    hog = []
    while True:
        hog.append(bytearray(16 * 1024 * 1024))
elif verb == "sleep":
    print("about to sleep", file=sys.stderr, flush=True)
    time.sleep(1000)
elif verb == "stubborn":
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    tell("stubborn")
    while True:
        time.sleep(1000)
elif verb == "daemon":
    daemon()
    tell("gone")
elif verb == "gigabyte":
    block = b"x" * 1_000_000
    for _ in range(1000):
        sys.stdout.buffer.write(block)
elif verb == "complain":
    for number in range(100_000):
        print("line", number, file=sys.stderr)
    sys.exit(3)
elif verb == "serve":
    for line in sys.stdin:
        tell(line.strip())
