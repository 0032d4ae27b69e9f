"""A host under the recorder's control: started, asked, killed; and the receiver of its webhooks."""
import http.client
import json
import os
import pathlib
import subprocess
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PATIENCE_S = 60


def wait_for(what, look):
    """The first thing that `look` gives and that is not None or False."""
    ends = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends:
        seen = look()
        if seen is not None and seen is not False:
            return seen
        time.sleep(0.02)
    raise SystemExit(f"error: waited for {what} in vain")


class Receiver:
    """Answers by path: `/hook` takes, `/refusing` refuses, `/dropping` hangs up, `/stuck` never answers."""

    def __init__(self):
        received = self.received = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                received.append((self.path, json.loads(body)))
                if self.path == "/stuck":
                    threading.Event().wait()
                if self.path != "/dropping":
                    self.send_response(400 if self.path == "/refusing" else 204)
                    self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


class Host:
    """One host in `folder`, with the files of a recorded host beside its data folder."""

    def __init__(self, binary, folder, store, receiver):
        self.binary, self.folder, self.store, self.receiver = binary, folder, store, receiver
        self.data, self.process = folder / "data", None
        here = pathlib.Path(__file__).parent
        folder.mkdir(parents=True)
        for name in ("player", "shed"):
            (folder / name).mkdir()
        for name in ("runner.py", "script.toml"):
            (folder / name).write_bytes((here / name).read_bytes())

    def configure(self, expires_s):
        template = (pathlib.Path(__file__).parent / "greenroom.toml").read_text()
        words = {
            "store": self.store,
            "runner": str(self.folder / "runner.py"),
            "receiver": self.receiver.url,
            "expires_s": str(expires_s),
        }
        for word, value in words.items():
            template = template.replace(f"@{word}@", value)
        (self.folder / "greenroom.toml").write_text(template)

    def start(self):
        command = [self.binary, "serve", "--data", self.data, "--config", self.folder / "greenroom.toml"]
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                [*command, "--listen", "127.0.0.1:0"],
                cwd=self.folder,
                env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
        wait_for("a host that is ready", self.is_ready)

    def is_ready(self):
        if self.process.poll() is not None:
            raise SystemExit(f"error: the host ended\n{(self.folder / 'log').read_text()}")
        try:
            place = json.loads((self.data / "host.json").read_text())
            if place["pid"] != self.process.pid:
                return False
            self.address = urllib.parse.urlsplit(place["url"]).netloc
            self.token = (self.data / "admin-token").read_text().strip()
            return self.ask("GET", "/readyz")[0] == 200
        except (OSError, ValueError):
            return False

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def ask(self, method, target, body=None, headers=None):
        """The status and the bytes of one answer."""
        connection = http.client.HTTPConnection(self.address, timeout=PATIENCE_S)
        headers = {"authorization": f"Bearer {self.token}", **(headers or {})}
        if isinstance(body, dict):
            body, headers["content-type"] = json.dumps(body), "application/json"
        connection.request(method, target, body=body, headers=headers)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, content

    def json(self, method, target, body=None, headers=None):
        """The answer to a request that must succeed."""
        status, content = self.ask(method, target, body, headers)
        if status >= 300:
            raise SystemExit(f"error: {method} {target}: {status} {content.decode()}")
        return json.loads(content)

    def get(self, target):
        return self.json("GET", target)
