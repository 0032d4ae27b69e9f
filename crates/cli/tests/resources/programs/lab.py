"""A module that does what its methods are called, and what it must not."""
import json, os, socket, subprocess, sys, time, urllib.error, urllib.request

module, method = sys.argv[1:3]
payload = json.loads(sys.stdin.read())


def done(data):
    print(json.dumps({"ok": True, "data": data}))


def attempt(action):
    try:
        return "done: " + str(action())[:200]
    except OSError as error:
        return type(error).__name__


def read(path):
    with open(path) as file:
        return len(file.read())


def write(path):
    with open(path, "w") as file:
        return file.write("new")


def connect(address, family=socket.AF_INET, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as connection:
        connection.settimeout(5)
        connection.connect(address)


def records(op):
    request = urllib.request.Request(os.environ["GREENROOM_URL"] + "/v1/tool-runtime/records", json.dumps(op).encode(), {
        "authorization": "Bearer " + os.environ["GREENROOM_CREDENTIAL"], "content-type": "application/json"})
    try:
        return json.load(urllib.request.urlopen(request))
    except urllib.error.HTTPError as error:
        return {"status": error.code, **json.load(error)}


if method == "echo":
    done({"payload": payload, "args": sys.argv[1:], "environment": sorted(os.environ)})
elif method == "slow":
    child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    with open("out/pids.part", "w") as file:
        json.dump([os.getpid(), child.pid], file)
    os.rename("out/pids.part", "out/pids")
    time.sleep(1000)
elif method == "crash":
    os.kill(os.getpid(), 11)
elif method == "leave":
    sys.exit(3)
elif method == "garbage":
    print("Traceback: this is not JSON")
elif method == "flood":
    sys.stdout.write('"' + "x" * 10_000_000 + '"')
elif method == "bare":
    print("[1, 2]")
elif method == "network":
    host = ("127.0.0.1", int(os.environ["GREENROOM_URL"].rsplit(":", 1)[1]))
    other = ("127.0.0.1", payload["port"])
    done({
        "host": attempt(lambda: connect(host)),
        "other": attempt(lambda: connect(other)),
        "udp": attempt(lambda: connect(other, kind=socket.SOCK_DGRAM)),
        "unix": attempt(lambda: connect(payload["socket"], family=socket.AF_UNIX)),
        "listen": attempt(lambda: socket.create_server(("127.0.0.1", 0))),
    })
elif method == "files":
    done({path: attempt(lambda: (read if how == "read" else write)(path)) for path, how in payload["paths"].items()})
elif method == "keep":
    kept = records({"op": "put", "module": module, "body": {"note": payload["note"]}})
    done({"kept": kept["record"]["body"], "listed": len(records({"op": "list", "module": module})["items"]),
          "foreign": records({"op": "list", "module": "calendar"})["status"]})
elif method == "remove":
    done("removed")
