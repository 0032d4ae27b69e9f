"""A test runner on the bare wire: standard library only, one thread per run.

What a run does is said by its input text: a verb and its arguments.
"""
import json, os, sys, threading, time

lock = threading.Lock()
cancelled = {}
answers = {}
items = []
next_id = [1000]


def write(data):
    with lock:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def send(message):
    write((json.dumps({"jsonrpc": "2.0", **message}) + "\n").encode())


def result(run_id, kind, **data):
    send({"method": "run.result", "params": {"run_id": run_id, "type": kind, "data": data}})


def delta(run_id, text):
    result(run_id, "message.delta", chunk={"role": "assistant", "content": text})


def done(run_id):
    result(run_id, "run.completed", finish_reason="stop")


def call(run_id, method, **params):
    with lock:
        next_id[0] += 1
        number = next_id[0]
    answers[number] = (threading.Event(), [])
    send({"id": number, "method": method, "params": {"run_id": run_id, **params}})
    answers[number][0].wait()
    return answers.pop(number)[1][0]


def tell(run_id, value):
    result(run_id, "message.completed", message={"role": "assistant", "content": json.dumps(value)})


def attempt(action):
    try:
        return "ok: " + str(action())[:80]
    except Exception as error:
        return type(error).__name__


def run(run_id, verb, arg):
    if verb == "echo":
        for word in arg.split():
            delta(run_id, word)
        done(run_id)
    elif verb == "wait":
        delta(run_id, "waiting")
        cancelled[run_id].wait()
        delta(run_id, "stopped")
        done(run_id)
    elif verb == "slow":
        time.sleep(float(arg))
        delta(run_id, "one")
        delta(run_id, "two")
        done(run_id)
    elif verb == "stubborn":
        delta(run_id, "waiting")
        threading.Event().wait()
    elif verb == "linger":
        done(run_id)
        while True:
            time.sleep(1)
    elif verb == "block":
        delta(run_id, "blocked")
        while not os.path.exists("go"):
            time.sleep(0.01)
        done(run_id)
    elif verb == "crash":
        delta(run_id, "before")
        print("about to crash", file=sys.stderr, flush=True)
        os._exit(3)
    elif verb == "garbage":
        write(b"this is not json\n")
        threading.Event().wait()
    elif verb == "garbage_named":
        write(b'{"run_id": "%s", broken\n' % run_id.encode())
        threading.Event().wait()
    elif verb == "invalid_utf8":
        write(b'{"method":"run.result","params":{"run_id":"' + run_id.encode() + b'","x":"\xff\xfe"}}\n')
        threading.Event().wait()
    elif verb == "long_line":
        write(b'{"method":"run.result","params":{"run_id":"' + run_id.encode() + b'","x":"')
        for _ in range(int(arg)):
            write(b"x" * 1_000_000)
        write(b'"}}\n')
        threading.Event().wait()
    elif verb == "flood":
        line = json.dumps({"method": "run.result", "params": {"run_id": run_id, "type": "message.delta", "data": {"chunk": {"content": "x" * 1000}}}})
        block = (line + "\n").encode() * 100
        for _ in range(int(arg) * 10):
            write(block)
        done(run_id)
    elif verb == "for_other":
        result(arg, "message.delta", chunk={"role": "assistant", "content": "forged"})
        done(run_id)
    elif verb == "late":
        send({"id": threading.current_thread().request, "result": {}})
        delta(run_id, "late")
        threading.current_thread().request = None
    elif verb == "fail":
        send({"id": threading.current_thread().request, "error": {"code": -32050, "message": arg}})
        threading.current_thread().request = None
    elif verb == "fork_bomb":
        while True:
            os.fork()
    elif verb == "children":
        import subprocess
        for _ in range(3):
            subprocess.Popen(["sleep", "1000"], start_new_session=True)
        delta(run_id, "started")
        threading.Event().wait()
    elif verb == "eat":
        hog = []
        while True:
            hog.append(bytearray(16 * 1024 * 1024))
    elif verb == "close_stdout":
        os.close(1)
        threading.Event().wait()
    elif verb == "call":
        tell(run_id, call(run_id, arg, value=run_id))
        done(run_id)
    elif verb == "call_for":
        other, method = arg.split()
        tell(run_id, call(other, method))
        done(run_id)
    elif verb == "call_and_give_up":
        send({"id": "c1", "method": "test.hang", "params": {"run_id": run_id}})
        delta(run_id, "called")
        cancelled[run_id].wait()
        send({"method": "request.cancel", "params": {"request_id": "c1"}})
        done(run_id)
    elif verb == "many_calls":
        for number in range(int(arg)):
            send({"id": f"m{number}", "method": "test.hang", "params": {"run_id": run_id}})
        tell(run_id, call(run_id, "state.get"))
        done(run_id)
    elif verb == "stream":
        answer = call(run_id, "test.stream")
        tell(run_id, {"items": items, "answer": answer})
        done(run_id)
    elif verb == "same_id_twice":
        send({"id": 7, "method": "test.hang", "params": {"run_id": run_id}})
        answers[7] = (threading.Event(), [])
        send({"id": 7, "method": "test.hang", "params": {"run_id": run_id}})
        answers[7][0].wait()
        tell(run_id, answers.pop(7)[1][0])
        done(run_id)
    elif verb == "close_stdin":
        os.close(0)
        delta(run_id, "closed")
        threading.Event().wait()
    elif verb == "stderr_flood":
        for _ in range(200):
            sys.stderr.write("noise\n" * 1000)
        done(run_id)
    elif verb == "read":
        tell(run_id, attempt(lambda: open(arg, "rb").read(16)))
        done(run_id)
    elif verb == "list":
        tell(run_id, attempt(lambda: sorted(os.listdir(arg))))
        done(run_id)
    elif verb == "write":
        tell(run_id, attempt(lambda: open(arg, "w").write("x")))
        done(run_id)
    elif verb == "kill":
        tell(run_id, attempt(lambda: os.kill(int(arg), 0)))
        done(run_id)
    elif verb == "reach":
        import ctypes, resource, socket
        libc, host = ctypes.CDLL(None, use_errno=True), int(arg)

        def called(name, *args):
            if getattr(libc, name)(*args) == -1:
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number))

        tell(run_id, {
            "prlimit": attempt(lambda: resource.prlimit(host, resource.RLIMIT_NOFILE, (64, 64))),
            "prlimit_read": attempt(lambda: resource.prlimit(host, resource.RLIMIT_NOFILE)),
            "priority": attempt(lambda: os.setpriority(os.PRIO_PROCESS, host, 19)),
            "priority_user": attempt(lambda: os.setpriority(os.PRIO_USER, 0, 19)),
            "affinity": attempt(lambda: os.sched_setaffinity(host, {0})),
            "scheduler": attempt(lambda: os.sched_setscheduler(host, os.SCHED_BATCH, os.sched_param(0))),
            "unshare": attempt(lambda: called("unshare", 0x10000000)),
            "packet": attempt(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW)),
            "raw": attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)),
            "shared_memory": attempt(lambda: called("shmget", 0, 4096, 0o1600)),
            "ptrace": attempt(lambda: called("ptrace", 16, host, 0, 0)),
            "mount": attempt(lambda: called("mount", b"none", b"/tmp", b"tmpfs", 0, None)),
            "device": attempt(lambda: os.mknod("device", 0o020600, os.makedev(1, 3))),
            "chown": attempt(lambda: os.chown(".", 12345, 12345)),
        })
        done(run_id)
    elif verb == "wall":
        import wall
        paths, sockets = (words.split(":") for words in arg.split(" "))
        tell(run_id, {**wall.attack(paths, sockets), "own": wall.work()})
        done(run_id)
    elif verb == "pip":
        import subprocess, zipfile
        with zipfile.ZipFile("wall_test-1-py3-none-any.whl", "w") as wheel:
            info = "wall_test-1.dist-info/"
            wheel.writestr("wall_test.py", "answer = 42\n")
            wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: wall-test\nVersion: 1\n")
            wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(info + "entry_points.txt", "[console_scripts]\nwall-test = wall_test:main\n")
            wheel.writestr(info + "RECORD", "")
        command = [sys.executable, "-m", "pip", "install", "--no-index", "--target", "lib", "wall_test-1-py3-none-any.whl"]
        ran = subprocess.run(command, capture_output=True, text=True)
        ask = [sys.executable, "-c", "import sys; sys.path.insert(0, 'lib'); import wall_test; print(wall_test.answer)"]
        answer = subprocess.run(ask, capture_output=True, text=True).stdout.strip()
        problem = ran.stderr[-400:] if ran.returncode else ""
        tell(run_id, [ran.returncode, problem, answer, os.access("lib/bin/wall-test", os.X_OK)])
        done(run_id)
    elif verb == "own":
        import resource, socket
        child = os.fork()
        if child == 0:
            os._exit(7)
        status = open("/proc/self/status").read().splitlines()
        tell(run_id, {
            "child": os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]),
            "limit": attempt(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))),
            "nice": attempt(lambda: os.nice(1)),
            "affinity": attempt(lambda: os.sched_setaffinity(0, os.sched_getaffinity(0))),
            "socket": attempt(lambda: socket.create_server(("127.0.0.1", 0)).close()),
            "capabilities": sorted({line.split()[1] for line in status if line.startswith("Cap")}),
        })
        done(run_id)
    elif verb == "self":
        tell(run_id, {
            "env": dict(os.environ), "fds": sorted(int(fd) for fd in os.listdir("/proc/self/fd"))[:8],
            "sid": os.getsid(0) == os.getpid(), "cwd": os.getcwd(), "pid": os.getpid(),
        })
        done(run_id)
    elif verb == "python":
        import ssl, sqlite3, subprocess, tempfile
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"x")
        out = subprocess.run([sys.executable, "-c", "print(6 * 7)"], capture_output=True, text=True)
        tell(run_id, [out.stdout.strip(), ssl.create_default_context() is not None, sqlite3.sqlite_version != ""])
        done(run_id)


def serve_run(request, params):
    context = params["context"]
    run_id = context["run_id"]
    verb, _, arg = (context["input"].get("text") or "").partition(" ")
    threading.current_thread().request = request
    try:
        run(run_id, verb, arg)
    except Exception as error:
        return send({"id": request, "error": {"code": -32603, "message": repr(error)}})
    if threading.current_thread().request is not None:
        send({"id": request, "result": {}})


MANIFEST = {"id": "plugin:test/wire/main", "name": "main", "label": {"en_US": "Wire"}}


def handle(message, plugin, manifests):
    method, number = message.get("method"), message.get("id")
    if method == "initialize":
        send({"id": number, "result": {"protocol_version": os.environ.get("PROTOCOL", "1"), "plugin": plugin}})
    elif method == "list_agent_runners":
        send({"id": number, "result": {"runners": manifests}})
    elif method == "run_agent":
        cancelled[message["params"]["context"]["run_id"]] = threading.Event()
        thread = threading.Thread(target=serve_run, args=(number, message["params"]), daemon=True)
        thread.start()
        if message["params"]["context"]["input"].get("text") == "block":
            thread.join()
    elif method == "run.cancel":
        cancelled[message["params"]["run_id"]].set()
    elif method == "stream.item":
        items.append(message["params"]["item"])
    elif method == "shutdown":
        send({"id": number, "result": {}})
    elif method is not None:
        if number is not None:
            send({"id": number, "error": {"code": -32601, "message": f"there is no method {method}"}})
    elif number in answers:
        event, box = answers[number]
        box.append(message.get("result", message.get("error")))
        event.set()


def main():
    mode = os.environ.get("MODE", "")
    if mode == "crash_at_start":
        sys.exit("cannot find my model")
    if mode == "chatty":
        print("hello, I am starting", flush=True)
    plugin = json.loads(os.environ.get("PLUGIN", '{"author":"test","name":"wire","version":"1.2.3"}'))
    manifests = json.loads(os.environ["MANIFESTS"]) if "MANIFESTS" in os.environ else [MANIFEST]
    served = 0
    for line in sys.stdin:
        handle(json.loads(line), plugin, manifests)
        served += 1
        if mode == "stall" and served == 2:
            time.sleep(1000)


main()
