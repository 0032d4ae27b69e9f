"""A runner that tries what the event's text says, a JSON list of [deed, target], and tells how each went."""
import errno, json, os, socket, ssl, subprocess, sys, tempfile
from wire import send, serve


def through(path):
    """Reads by way of a link of one's own."""
    link = f"link-{len(os.listdir())}"
    os.symlink(path, link)
    return open(link, "rb").read(1)


def hold(megabytes):
    """Memory in a file without a name, which is never mapped."""
    file = os.memfd_create("hold")
    for _ in range(int(megabytes)):
        os.write(file, b"x" * (1 << 20))


DEEDS = {
    "hold": hold,
    "connect": lambda port: socket.create_connection(("127.0.0.1", int(port)), 5).close(),
    "resolve": lambda name: socket.getaddrinfo(name, 80),
    "through": through,
    "read": lambda path: open(path, "rb").read(1),
    "list": lambda path: len(os.listdir(path)),
    "write": lambda path: open(path, "w").write("x"),
    "signal": lambda pid: os.kill(int(pid), 0),
    "child": lambda code: subprocess.run([sys.executable, "-c", code], check=True, capture_output=True),
    "temp": lambda text: tempfile.TemporaryFile("w").write(text),
    "tls": lambda _: ssl.create_default_context(),
    "variable": lambda name: os.environ[name],
}


def tried(deed, target):
    try:
        DEEDS[deed](target)
        return "done"
    except OSError as error:
        closed = (errno.EACCES, errno.EPERM, errno.ENOENT, errno.EROFS)
        return "refused" if error.errno in closed else type(error).__name__
    except KeyError as error:
        return type(error).__name__


def play(request, run, context):
    seen = [tried(deed, target) for deed, target in json.loads(context["input"]["text"])]
    message = {"role": "assistant", "content": json.dumps(seen)}
    send(method="run.result", params={"run_id": run, "type": "run.completed", "data": {"message": message}})
    send(id=request, result={})


serve("spy", play)
