"""The host under test, as a process, driven over its HTTP API."""

import base64
import json
import os
import pathlib
import shutil
import subprocess
import time
import urllib.request

from .played import PNG, Played


def toml(value):
    """A value as TOML; JSON is the same but for objects and nulls."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {toml(one)}" for key, one in value.items() if one is not None) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


def runner(name, python, env):
    """The table of a runner. `PATH` is for command line agents, which the plugin starts."""
    env = "".join(f"{key} = {json.dumps(value)}\n" for key, value in {**env, "PATH": os.environ["PATH"]}.items())
    return (f'[runners.{name}]\nwire = "langbot"\ndir = "{name}"\nnetwork = true\ncommand = ["{python}"]\n'
            f"[runners.{name}.env]\n{env}")


class Greenroom:
    name = "Greenroom"

    def __init__(self, binary, folder, models, tools):
        """`models` are names of chat models to addresses, `tools` names of MCP servers to addresses."""
        self.binary, self.folder = str(binary), pathlib.Path(folder)
        self.config = "[limits]\nrunner_start_s = 60\ncancel_grace_s = 5\n"
        for name, (url, model) in models.items():
            self.config += (f'[models.{name}]\nprovider = "openai-compatible"\nmodel = "{model}"\nbase_url = "{url}/v1"\n'
                            'api_key = { env = "FAKE_KEY" }\nallow_private = true\nretries = 0\n')
        for name, url in tools.items():
            self.config += f'[tools.{name}]\nurl = "{url}/mcp"\nallow_private = true\n'
        self.agents, self.runners = {}, {}

    def add(self, agent, source, plugin, python, config, grant, env=None, queue="serial"):
        """An agent on a copy of the plugin in `source`; agents of one plugin share its process."""
        if plugin not in self.runners:
            self.runners[plugin] = agent
            shutil.copytree(source, self.folder / agent, ignore=shutil.ignore_patterns(".git", "__pycache__", ".venv"))
            self.config += runner(agent, python, env or {})
        self.agents[agent] = self.runners[plugin]
        self.config += (f'[agents.{agent}]\nrunner = "plugin:{plugin}/default"\nevents = []\nqueue = "{queue}"\n'
                        f"config = {toml(config)}\ngrant = {toml(grant)}\n")

    def workspace(self, agent):
        return self.folder / agent

    def start(self):
        config, data = self.folder / "greenroom.toml", self.folder / "data"
        config.write_text(self.config)
        self.log = open(self.folder / "log", "w")
        command = [self.binary, "serve", "--config", str(config), "--data", str(data), "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log, env={**os.environ, "FAKE_KEY": "none"})
        self.wait(lambda: (data / "host.json").exists(), "the host does not start")
        address = json.loads((data / "host.json").read_text())
        self.url = address.get("url") or f"http://{address['address']}"
        self.token = (data / "admin-token").read_text().strip()

    def wait(self, condition, why, seconds=60):
        until = time.time() + seconds
        while not (found := condition()):
            if time.time() > until or self.process.poll() is not None:
                raise AssertionError(f"{why}\n{(self.folder / 'log').read_text()[-4000:]}")
            time.sleep(0.02)
        return found

    def call(self, path, body=None, kind="application/json"):
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {
            "authorization": f"Bearer {self.token}", "content-type": kind})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def loads(self, agent):
        """Whether the runner is ready, or why not."""
        def settled():
            runner = next(one for one in self.call("/v1/runners")["items"] if one["name"] == self.agents[agent])
            return runner if runner["status"] != "starting" else None
        runner = self.wait(settled, f"{agent} does not load")
        return runner["status"] == "ready" and bool(runner["runners"]) or runner

    def send(self, agent, conversation, text, picture=False, file=None):
        message = {"text": text}
        if picture:
            image = {"type": "image", "data_base64": base64.b64encode(PNG).decode(), "mime_type": "image/png"}
            message["contents"] = [image] if picture == "alone" else [{"type": "text", "text": text}, image]
        if file:
            name, data = file
            artifact = self.call(f"/v1/artifacts?name={name}&conversation_id={conversation}", data, "text/plain")
            message["attachments"] = [{"artifact_id": artifact["artifact_id"]}]
        event = {"event_type": "message.received", "agent": agent, "conversation_id": conversation,
                 "actor": {"actor_type": "user", "actor_id": "u1", "actor_name": "User"}, "input": message}
        return self.call("/v1/events", event).get("run_id")

    def ended(self, run):
        def over():
            view = self.call(f"/v1/runs/{run}")
            return view if view["status"] not in ("queued", "running") else None
        return self.wait(over, f"run {run} does not end")

    def play(self, agent, conversation, text, **given):
        before = len(self.answers(conversation))
        run = self.send(agent, conversation, text, **given)
        return self.read(self.ended(run), conversation, before)

    def read(self, view, conversation, before=0):
        results = self.call(f"/v1/runs/{view['run_id']}/results?limit=200")["items"]
        shown, text = [], ""
        for result in results:
            if result["type"] == "message.delta":
                chunk = result["data"]["chunk"]
                text = chunk["content"] if chunk.get("replace") else text + chunk["content"]
                shown.append(text)
            elif result["type"] == "message.completed":
                text = ""
        answers = self.answers(conversation)[before:]
        error = view.get("error") or {}
        return Played(view["status"], answers, shown, error.get("message", ""), results)

    def answers(self, conversation):
        try:
            page = self.call(f"/v1/conversations/{conversation}/history?limit=200")
        except urllib.error.HTTPError:
            return []
        return [item["text"] for item in page["items"] if item["role"] == "assistant"]

    def cancel(self, agent, conversation, text, reached):
        """Cancels a run once the service has it; the run's status and what it left."""
        run = self.send(agent, conversation, text)
        self.wait(reached, f"{agent} does not reach its service")
        self.call(f"/v1/runs/{run}/cancel", b"")
        return self.read(self.ended(run), conversation)

    def end(self):
        self.process.terminate()
        self.process.wait(20)
