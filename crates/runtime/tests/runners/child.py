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
elif verb == "wall":
    import wall
    tell({**wall.attack(os.environ["PATHS"].split(":"), os.environ["SOCKETS"].split(":")), "own": wall.work()})
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
elif verb == "network":
    import urllib.request
    host, other, udp = (int(port) for port in args)

    def greeting(port):
        with socket.create_connection(("127.0.0.1", port), 5) as connection:
            return connection.recv(100).decode()

    def local():
        # A server of its own, which no one else sees.
        with socket.create_server(("127.0.0.1", 0)) as server:
            connect(socket.AF_INET, socket.SOCK_STREAM, server.getsockname())

    tell({
        "host": attempt(lambda: greeting(host)),
        "other": attempt(lambda: greeting(other)),
        "elsewhere": attempt(lambda: connect(socket.AF_INET, socket.SOCK_STREAM, ("192.0.2.1", host))),
        "udp": attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", udp))),
        "dns": attempt(lambda: socket.getaddrinfo("example.com", 80)),
        "local": attempt(local),
        "proxies": sorted(name for name in os.environ if "proxy" in name.lower()),
    })
elif verb == "proxy":
    import urllib.error, urllib.request

    def fetch(url, direct):
        for name in ("NO_PROXY", "no_proxy"):
            os.environ[name] = "127.0.0.1" if direct else ""
        try:
            return urllib.request.urlopen(url, timeout=10).read().decode()
        except urllib.error.HTTPError as error:
            return f"{error.code}: {error.read().decode()}"
        except Exception as error:
            return type(error).__name__

    def curl(*words):
        command = ["curl", "-sS", "--max-time", "10", "--noproxy", "", *words]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.stdout if done.returncode == 0 else f"curl {done.returncode}: {done.stderr.strip()}"

    listed, other = (f"http://127.0.0.1:{port}/x" for port in args)
    tell({
        "direct": fetch(listed, True), "direct_other": fetch(other, True),
        "listed": fetch(listed, False), "other": fetch(other, False),
        "name": fetch("http://example.com/", False),
        "curl": curl(listed), "curl_other": curl(other), "tunnel": curl("-p", listed),
        "tunnel_other": curl("-p", other),
    })
elif verb == "memfd":
    file = os.memfd_create("hog")
    block = b"x" * (16 * 1024 * 1024)
    for _ in range(192):
        os.write(file, block)
    tell("3 GB")
    time.sleep(1000)
elif verb == "shared":
    # Mapped and open: counts once.
    import mmap
    file = os.memfd_create("shared")
    os.ftruncate(file, 80 * 1024 * 1024)
    memory = mmap.mmap(file, 80 * 1024 * 1024)
    for offset in range(0, len(memory), 4096):
        memory[offset] = 1
    time.sleep(1.5)
    tell("kept")
elif verb == "hide":
    import ctypes
    tell([ctypes.CDLL(None).prctl(4, 0, 0, 0, 0), ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)])
elif verb == "unreadable":
    import shutil
    shutil.copy("/bin/sleep", "sleep")
    os.chmod("sleep", 0o111)
    os.execv("./sleep", ["sleep", "1000"])
elif verb == "leader":
    # The first thread ends; another one holds memory.
    import ctypes, platform, threading
    def hold():
        time.sleep(0.3)
        file = os.memfd_create("held")
        for _ in range(300):
            os.write(file, bytes(1 << 20))
        time.sleep(60)
    threading.Thread(target=hold).start()
    ctypes.CDLL(None).syscall(60 if platform.machine() == "x86_64" else 93, 0)
elif verb == "tables":
    # Reads one byte of every 2 MiB: no page is its own, but each needs a page of the table.
    import ctypes
    system = ctypes.CDLL(None)
    system.mmap.restype, system.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
    step, count = 2 << 20, 100_000
    start = system.mmap(None, step * count, 1, 0x4022, -1, 0)
    system.madvise(ctypes.c_void_p(start), ctypes.c_size_t(step * count), 15)
    for number in range(count):
        ctypes.string_at(start + number * step, 1)
    time.sleep(60)
elif verb == "reserve":
    file = os.open("reserved", os.O_CREAT | os.O_RDWR)
    time.sleep(1.5)
    os.posix_fallocate(file, 0, 200 << 20)
    time.sleep(60)
elif verb == "threads":
    import threading
    threading.stack_size(64 * 1024)
    for _ in range(int(args[0])):
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
    time.sleep(1000)
elif verb == "fill":
    # Ten megabytes at a time, or empty files, until it is stopped.
    what, folder = args[0], {"own": ".", "temporary": os.environ["TMPDIR"], "home": os.environ["HOME"]}[args[1]]
    for number in range(1000):
        if what == "bytes":
            with open(f"{folder}/{number}", "wb") as file:
                file.write(b"x" * 10_000_000)
        elif what == "deleted":
            file = os.open(f"{folder}/x", os.O_CREAT | os.O_WRONLY)
            os.unlink(f"{folder}/x")
            os.write(file, b"x" * 10_000_000)
        else:
            for inner in range(100):
                open(f"{folder}/{number}-{inner}", "w").close()
        time.sleep(0.01)
    tell("filled")
elif verb == "deep":
    os.chdir(os.environ["TMPDIR"])
    for _ in range(int(args[0])):
        os.mkdir("deeper")
        os.chdir("deeper")
    tell("deep")
