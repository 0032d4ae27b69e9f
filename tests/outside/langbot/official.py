"""Drives the official plugins under a real host, with fakes of their services, and prints what worked.

    python official.py GREENROOM PLUGINS

GREENROOM is the binary. PLUGINS is a folder with checkouts of `langbot-plugin-sdk` (branch `dev/4.11.x`),
`langbot-agent-runner` and `langbot-local-agent`; nothing of them is changed: the plugins are copied.
"""

import base64
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

from fakes import CONVERSATION, Dify, N8n, Openai

HERE = pathlib.Path(__file__).parent
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


class Host:
    def __init__(self, binary, folder, config):
        self.folder = folder
        (folder / "greenroom.toml").write_text(config)
        self.log = open(folder / "log", "w")
        command = [binary, "serve", "--config", str(folder / "greenroom.toml"), "--data", str(folder / "data"),
                   "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        found = folder / "data/host.json"
        until = time.time() + 30
        while not found.exists():
            assert time.time() < until and self.process.poll() is None, (folder / "log").read_text()
            time.sleep(0.05)
        address = json.loads(found.read_text())
        self.url = address.get("url") or f"http://{address['address']}"
        self.token = (folder / "data/admin-token").read_text().strip()

    def call(self, path, body=None, kind="application/json"):
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {
            "authorization": f"Bearer {self.token}", "content-type": kind})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def play(self, agent, conversation, text, **given):
        event = {"event_type": "message.received", "agent": agent, "conversation_id": conversation,
                 "actor": {"actor_type": "user", "actor_id": "u1"}, "input": {"text": text, **given}}
        run = self.call("/v1/events", event)["run_id"]
        until = time.time() + 60
        while True:
            view = self.call(f"/v1/runs/{run}")
            if view["status"] not in ("queued", "running"):
                break
            assert time.time() < until, f"{agent} does not end"
            time.sleep(0.05)
        items = self.call(f"/v1/conversations/{conversation}/history?limit=200")["items"]
        answers = [item["text"] for item in items if item["role"] == "assistant"]
        results = self.call(f"/v1/runs/{run}/results?limit=200")["items"]
        return view, answers, results

    def end(self):
        self.process.terminate()
        self.process.wait(20)


def agent(name, plugin, config, more=""):
    return f'[agents.{name}]\nrunner = "plugin:{plugin}/default"\nevents = []\nconfig = {config}\n{more}\n'


def environment(checkouts, folder):
    python = folder / "venv/bin/python"
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, checkouts / "langbot-plugin-sdk", "httpx", "pyjwt", "aiohttp"], check=True)
    return python


def configuration(python, fakes):
    plugins = ["n8n-agent", "dify-agent", "langbot-local-agent", "guards"]
    runners = "".join(f'[runners.{name}]\nwire = "langbot"\ndir = "{name}"\ncommand = ["{python}"]\n' for name in plugins)
    model = (f'[models.m]\nprovider = "openai-compatible"\nmodel = "m"\nbase_url = "{fakes["openai"].url}/v1"\n'
             'api_key = { env = "FAKE_KEY" }\nallow_private = true\n')
    tool = 'grant = { models = ["m"], modules = ["calendar.*"] }'
    local = '{ model = { primary = "m", fallbacks = [] } }'
    return (f"[limits]\nrunner_start_s = 60\n{runners}{model}"
            + agent("n8n", "langbot/n8n-agent", f'{{ webhook-url = "{fakes["n8n"].url}/hook", auth-type = "none" }}')
            + agent("dify", "langbot/dify-agent",
                    f'{{ base-url = "{fakes["dify"].url}/v1", app-type = "chat", api-key = "k", base-prompt = "look" }}')
            + agent("local", "langbot-team/LocalAgent", local, tool)
            + agent("guards", "greenroom-tests/guards", "{}"))


def is_streamed(results):
    deltas = [one["data"]["chunk"] for one in results if one["type"] == "message.delta"]
    return len(deltas) > 1 and not any(chunk.get("replace") for chunk in deltas)


def cells(host, fakes):
    """(plugin, cell, whether it worked)."""
    picture = {"contents": [{"type": "text", "text": "see"}, {"type": "image", "data_base64": PNG, "mime_type": "image/png"}]}
    view, answers, results = host.play("n8n", "n1", "hi")
    yield "n8n", "text", answers == ["Hello from n8n"]
    yield "n8n", "streamed", is_streamed(results)
    host.play("n8n", "n1", "again")
    first, second = (json.loads(body) for _, body in fakes["n8n"].requests[:2])
    shared = [key for key in first if "conversation_id" in key or "session_id" in key]
    yield "n8n", "state over two turns", bool(shared) and all(first[key] == second[key] for key in shared)
    yield "n8n", "variables of the event", first.get("sender_id") == "u1" or first
    yield "n8n", "error of its service", host.play("n8n", "n2", "break")[0]["status"] == "failed"

    view, answers, results = host.play("dify", "d1", "hi")
    yield "dify", "text", answers == ["Hello from dify"]
    host.play("dify", "d1", "again")
    chats = [json.loads(body) for path, body in fakes["dify"].requests if path.endswith("chat-messages")]
    yield "dify", "state over two turns", chats[1].get("conversation_id") == CONVERSATION
    host.play("dify", "d2", "see", **picture)
    uploads = [body for path, body in fakes["dify"].requests if path.endswith("files/upload")]
    yield "dify", "picture in", len(uploads) == 1 and base64.b64decode(PNG) in uploads[0]
    named = host.call("/v1/artifacts?name=a.txt&conversation_id=d3", b"some text", "text/plain")["artifact_id"]
    host.play("dify", "d3", "read", attachments=[{"artifact_id": named}])
    uploads = [body for path, body in fakes["dify"].requests if path.endswith("files/upload")]
    yield "dify", "file in", len(uploads) == 2 and b"some text" in uploads[1]
    yield "dify", "error of its service", host.play("dify", "d4", "break")[0]["status"] == "failed"

    view, answers, results = host.play("local", "l1", "hi")
    yield "LocalAgent", "text", answers == ["turn 1 pictures 0"] or answers
    yield "LocalAgent", "streamed", is_streamed(host.play("local", "l0", "a long one")[2])
    yield "LocalAgent", "history", host.play("local", "l1", "again")[1][-1].split()[:2] == ["turn", "2"]
    view, answers, results = host.play("local", "l2", "use the tool")
    kinds = [one["type"] for one in results]
    yield "LocalAgent", "tool", answers[-1:] == ["the tool answered"] and "tool.call.completed" in kinds or (answers, kinds)
    yield "LocalAgent", "picture in", "pictures 1" in host.play("local", "l3", "see", **picture)[1][-1]
    yield "LocalAgent", "error of its service", host.play("local", "l4", "break")[0]["status"] == "failed"

    pid = next(one for one in host.call("/v1/runners")["items"] if one["name"] == "guards")["pid"]
    yield "guards", "sys.exit", host.play("guards", "g1", "exit")[0]["status"] == "failed"
    yield "guards", "stray CancelledError", host.play("guards", "g2", "stray")[0]["status"] == "failed"
    yield "guards", "print without newline", host.play("guards", "g3", "print")[1] == ["print"]
    told = json.loads(host.play("guards", "g4", "input", **{"contents": picture["contents"][1:]})[1][0])
    yield "guards", "picture in", told["attachments"][0]["content"].endswith(PNG)
    host.play("guards", "g5", "state")
    yield "guards", "state over two turns", host.play("guards", "g5", "state")[1][-1] == "2"
    same = next(one for one in host.call("/v1/runners")["items"] if one["name"] == "guards")["pid"]
    yield "guards", "one process for all of it", pid == same


def main(binary, checkouts):
    checkouts = pathlib.Path(checkouts).resolve()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        python = environment(checkouts, folder)
        for name in ("n8n-agent", "dify-agent"):
            shutil.copytree(checkouts / "langbot-agent-runner" / name, folder / name)
        shutil.copytree(checkouts / "langbot-local-agent", folder / "langbot-local-agent")
        shutil.copytree(HERE / "plugins-older/guards", folder / "guards")
        fakes = {"n8n": N8n(), "dify": Dify(), "openai": Openai()}
        host = Host(binary, folder, configuration(python, fakes))
        failed = 0
        try:
            for plugin, cell, worked in cells(host, fakes):
                print(f"{plugin:12} {cell:28} {'works' if worked is True else f'FAILS {worked}'}", flush=True)
                failed += worked is not True
        finally:
            host.end()
            if failed:
                print((folder / "log").read_text()[-6000:], file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
