"""A real host with every kind of process, in a folder of its own, started as the wanted user."""

import json
import os
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
ATTACK = HERE.parent / "attack"
START_S, RUN_S = 30, 110
ENDED = ("completed", "failed", "cancelled", "timeout")
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class HostError(Exception):
    """The host could not be started or asked."""


class Stage:
    """A host in `place`, with `kinds`; `keys` are the optional keys that this host knows."""

    def __init__(self, place, kinds, keys, environment):
        self.place, self.kinds, self.keys = place, kinds, keys
        self.environment, self.process = environment, None

    def prepare(self):
        work = self.place.work
        for program, folder in (("victim.py", "victim"), ("caller.py", "caller")):
            self.place.folder(work / folder)
            self.place.copy(HERE / "programs" / program, work / folder / program)
        for kind in self.kinds:
            self.place.folder(work / kind.name)
            for path in sorted(ATTACK.rglob("*.py")):
                self.place.copy(path, work / kind.name / path.relative_to(ATTACK))
            self.place.write(work / kind.name / "replaceable.py", "# replaceable\n")
            if kind.asked_as == "method":
                self.place.write(work / kind.name / "module.toml", self.manifest(kind))
        self.place.write(work / "other-module" / "module.toml", f"# {self.place.secret('manifest')}\n")
        self.place.write(work / "greenroom.toml", self.config())

    def command(self, kind):
        return json.dumps([self.place.python, "escape.py", kind.name, self.tag(kind)])

    def tag(self, kind):
        """In the arguments of every process of this kind."""
        return f"tag-{self.place.run}-{kind.name}"

    def manifest(self, kind):
        network = self.network(kind) or ""
        if not self.keys.get("lists") and kind.network == "false":
            network = ""
        return (f'module = "{module(kind)}"\ndescription = "hostile"\ncommand = {self.command(kind)}\n'
                f'{network}\n[methods.attack]\ndescription = "attacks"\nrisk = "read"\ntimeout_s = 100\n'
                'input_schema = { type = "object", properties = { request = { type = "string" } }, required = ["request"] }\n')

    def network(self, kind):
        """The key, or nothing where this host does not know it."""
        value = kind.network.replace("LISTED", str(self.place.listed_port))
        if value.startswith("[") and not self.keys.get("lists"):
            return None
        if kind.table == "runners" and not self.keys.get("runner_network"):
            return None
        return f"network = {value}"

    def config(self):
        lines = [
            f"# {self.place.secret('config')}",
            "[store]\nsync = \"normal\"",
            "[limits]\ncancel_grace_s = 1\nrunner_start_s = 30\nrunner_backoff_max_s = 1\nrun_deadline_s = 120",
            "shutdown_grace_s = 1",
            "[tokens.website]\nrole = \"sender\"\ntoken = { file = \"secrets/website-token\" }",
            f'[runners.victim]\ncommand = ["{self.place.python}", "victim.py"]\ndir = "victim"',
            '[runners.victim.env]\nVICTIM_SECRET = { file = "secrets/victim-secret" }',
            f'[runners.caller]\ncommand = ["{self.place.python}", "caller.py"]\ndir = "caller"',
            '[agents.caller]\nrunner = "plugin:suite/caller/main"\nevents = []\nqueue = "parallel"',
            "[agents.caller.grant]",
            "tools = " + json.dumps([f"{kind.name}.*" for kind in self.kinds if kind.asked_as == "tool"]),
            "modules = " + json.dumps([f"{module(kind)}.*" for kind in self.kinds if kind.asked_as == "method"]),
        ]
        for kind in self.kinds:
            lines.extend(self.tables(kind))
        return "\n".join(lines) + "\n"

    def tables(self, kind):
        if kind.asked_as == "method":
            return [f'[tools.{kind.name}]\nkind = "module"\nmanifest = "{kind.name}/module.toml"']
        more = [f"[{kind.table}.{kind.name}]", f"command = {self.command(kind)}", f'dir = "{kind.name}"',
                f"processes = {kind.processes}", f"memory_mb = {kind.memory_mb}", self.network(kind)]
        if kind.sandbox != "on":
            more.append(f'sandbox = "{kind.sandbox}"')
        if kind.table == "tools":
            more.append("timeout_s = 100")
        if kind.wire == "langbot":
            more.append('wire = "langbot"')
        more += [f"{name} = {value}" for name, value in self.keys.get("quotas", {}).items()]
        if kind.asked_as == "agent":
            more += [f"[agents.{kind.name}]", f'runner = "plugin:hostile/{kind.name}/main"', "events = []"]
        return [line for line in more if line]

    def start(self):
        log = open(self.place.work / "log", "ab")
        os.chown(log.fileno(), self.place.uid, self.place.gid)
        address = self.place.data / "host.json"
        address.unlink(missing_ok=True)
        self.process = subprocess.Popen(
            [self.place.binary, "serve", "--data", self.place.data, "--config", self.place.work / "greenroom.toml",
             "--listen", "127.0.0.1:0"],
            cwd=self.place.work, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            **self.place.as_user())
        log.close()
        deadline = time.monotonic() + START_S
        while not (address.exists() and address.read_text()):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise HostError("the host does not start:\n" + self.log()[-3000:])
            time.sleep(0.05)
        self.url = json.loads(address.read_text())["url"].split("#")[0].rstrip("/")
        self.port = int(self.url.rsplit(":", 1)[1])
        self.token = (self.place.data / "admin-token").read_text().strip()

    def log(self):
        return (self.place.work / "log").read_text(errors="replace")

    def http(self, method, path, body=None, token=None):
        data = None if body is None else json.dumps(body).encode()
        headers = {"authorization": f"Bearer {token or self.token}", "content-type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with OPENER.open(request, timeout=30) as answer:
            return json.load(answer)

    def runner(self, name):
        items = self.http("GET", "/v1/runners")["items"]
        return next((item for item in items if item["name"] == name), {})

    def wait_ready(self, name):
        deadline = time.monotonic() + START_S
        while not (pid := self.runner(name).get("pid")):
            if time.monotonic() > deadline:
                raise HostError(f"the runner `{name}` is not ready: {self.runner(name)}\n{self.log()[-3000:]}")
            time.sleep(0.05)
        return pid

    def ask(self, kind, escapes, targets):
        """The reports of the attack program, or the error that ended it."""
        request = json.dumps({"escapes": escapes, "targets": targets})
        if kind.asked_as == "agent":
            return self.reports(self.run(kind.name, request))
        parameters = {"request": request}
        tool = f"{kind.name}.attack"
        if kind.asked_as == "method":
            tool = "project_cli"
            parameters = {"module": module(kind), "method": "attack", "input": parameters}
        answer = self.run("caller", json.dumps({"tool": tool, "parameters": parameters}))
        if "error" in answer and "content" not in answer:
            return {"error": answer["error"]}
        told = json.loads(answer["content"])
        if "error" in told:
            return {"error": json.dumps(told["error"])}
        result = told["result"]
        if result.get("error"):
            return {"error": json.dumps(result["error"])}
        return self.reports({"content": find_reports(result)})

    def reports(self, answer):
        if not answer.get("content"):
            return {"error": answer.get("error", "no answer")}
        return json.loads(answer["content"])

    def run(self, agent, text):
        event = {"event_type": "message.received", "agent": agent, "conversation_id": f"{agent}-{time.monotonic_ns()}",
                 "actor": {"actor_type": "user", "actor_id": "ann"}, "input": {"text": text}}
        run_id = self.http("POST", "/v1/events", event)["run_id"]
        deadline = time.monotonic() + RUN_S
        while (run := self.http("GET", f"/v1/runs/{run_id}"))["status"] not in ENDED:
            if time.monotonic() > deadline:
                return {"error": "the run does not end"}
            time.sleep(0.02)
        if run["status"] != "completed":
            return {"error": json.dumps(run.get("error"))}
        items = self.http("GET", f"/v1/runs/{run_id}/results?limit=50")["items"]
        contents = [item["data"]["message"]["content"] for item in items
                    if item["type"] in ("message.completed", "run.completed") and (item.get("data") or {}).get("message")]
        return {"content": contents[0] if contents else None}

    def kill(self):
        """As a crash does it."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.kill()


def module(kind):
    """The name of a kind as one of a module."""
    return kind.name.replace("-", "_")


def find_reports(value):
    """The text with the reports, wherever the wire has put it."""
    if isinstance(value, str):
        return value if value.startswith('{"reports"') else None
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((found for found in map(find_reports, children) if found), None)


def known_keys(binary, folder):
    """Which optional keys this binary's configuration knows."""
    def accepts(text):
        file = folder / "probe.toml"
        file.write_text(text)
        try:
            done = subprocess.run([binary, "check", "--config", file], capture_output=True, text=True, cwd=folder, timeout=20)
            return "error" not in done.stderr
        finally:
            file.unlink()
    runner = '[runners.x]\ncommand = ["true"]\n'
    return {
        "runner_network": accepts(runner + "network = false\n"),
        "lists": accepts('[tools.x]\ncommand = ["true"]\nnetwork = ["127.0.0.1:1"]\n'),
        "quotas": {name: value for name, value in (("disk_mb", 64), ("files", 2000), ("threads", 128))
                   if accepts(runner + f"{name} = {value}\n")},
    }


def remove(path):
    """Again while something still writes there."""
    for _ in range(20):
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists():
            return
        time.sleep(0.1)
