"""Drives real harnesses through a real host, against a scripted model, and prints what holds for each.

harness.py PROGRAM HARNESSES KEYS NAME...   KEYS: own | gateway
"""

import base64
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM, MODULES, KEYS = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
NAMES = sys.argv[4:]
COMMANDS = {
    "goose": ["@aaif/goose-binary-linux-x64/bin/goose", "acp"],
    "codex": [".bin/codex-acp"],
    "claude": [".bin/claude-agent-acp"],
    "gemini": [".bin/gemini", "--acp"],
    # It needs a newer Node than the system's may be.
    "kimi": ["node/bin/node", "@moonshot-ai/kimi-code/dist/main.mjs", "acp"],
    "opencode": [".bin/opencode", "acp"],
}
CANARY = "sk-canary-0123456789abcdefghijklmnop"
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PATIENCE = 120
# Names under which harnesses offer the tools of an MCP server to their models.
PREFIXES = ["mcp__greenroom__", "mcp__greenroom_", "mcp__greenroom.", "greenroom__", "greenroom_", "mcp_greenroom_", ""]
SKILL = "Counting whales, as of 1851"
PROBE = '''
import json, sys
TOOLS = [{"name": name, "description": f"Use it to {name}", "inputSchema": {"type": "object", "properties": {"key": {"type": "string"}}},
          "annotations": {"readOnlyHint": name == "lookup", "destructiveHint": False, "openWorldHint": False}} for name in ("lookup", "store")]
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if id is None:
        continue
    if method == "initialize":
        result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "probe", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": TOOLS}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": f"{message['params']['name']} found 4711"}]}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no method"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}), flush=True)
'''


class Host:
    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.process: subprocess.Popen | None = None

    def start(self) -> None:
        log = open(self.folder / "log", "a")
        arguments = [PROGRAM, "serve", "--config", "greenroom.toml", "--data", "data", "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(arguments, cwd=self.folder, stdout=log, stderr=log)
        for _ in range(1200):
            try:
                place = json.loads((self.folder / "data/host.json").read_text())
                if place["pid"] == self.process.pid:
                    self.url = place["url"]
                    self.token = (self.folder / "data/admin-token").read_text().strip()
                    self.call("GET", "/readyz")
                    return
            except (OSError, ValueError, urllib.error.URLError):
                pass
            assert self.process.poll() is None, (self.folder / "log").read_text()
            time.sleep(0.05)
        raise AssertionError("the host does not start")

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)

    def call(self, method: str, path: str, body: object = None) -> dict:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read()
        return json.loads(text) if text.startswith((b"{", b"[")) else {}

    def send(self, agent: str, conversation: str, text: str, **more: object) -> str:
        event = {"event_type": "message.received", "agent": agent, "conversation_id": conversation,
                 "actor": {"actor_type": "user", "actor_id": "u1"}, "input": {"text": text, **more}}
        return self.call("POST", "/v1/events", event)["run_id"]

    def wait(self, what: str, found: object) -> object:
        end = time.time() + PATIENCE
        while time.time() < end:
            value = found()
            if value:
                return value
            time.sleep(0.05)
        raise AssertionError(f"no {what} within {PATIENCE} s")

    def ended(self, run_id: str) -> dict:
        def over() -> dict | None:
            run = self.call("GET", f"/v1/runs/{run_id}")
            return run if run["status"] not in ("queued", "running") else None
        return self.wait("end of the run", over)

    def results(self, run_id: str) -> list[dict]:
        return self.call("GET", f"/v1/runs/{run_id}/results?limit=200")["items"]

    def text(self, run_id: str) -> str:
        completed = [r for r in self.results(run_id) if r["type"] == "message.completed"]
        return "\n".join(r["data"]["message"]["content"] for r in completed)

    def approval(self, run_id: str) -> dict:
        def pending() -> dict | None:
            items = self.call("GET", f"/v1/approvals?status=pending&run_id={run_id}")["items"]
            return items[0] if items else None
        return self.wait("approval", pending)

    def answer(self, approval: dict, decision: str) -> None:
        body = {"decision": decision, "nonce": approval["nonce"]}
        self.call("POST", f"/v1/approvals/{approval['approval_id']}", body)


def completed(host: Host, run_id: str) -> dict:
    run = host.ended(run_id)
    assert run["status"] == "completed", (run["status"], run.get("error"))
    return run


def processes(mark: str) -> list[int]:
    """The processes whose command line or environment names the folder of this test."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
                text = (entry / "environ").read_bytes() + command
            except OSError:
                continue
            if b"model-server" in command:
                continue
            if mark.encode() in text:
                found.append(int(entry.name))
    return found


class Scene:
    def __init__(self, name: str, host: Host, log: pathlib.Path) -> None:
        self.name, self.host, self.log = name, host, log

    def text_turn(self) -> None:
        run_id = self.host.send(self.name, "c1", "HELLO NONCE-one")
        completed(self.host, run_id)
        assert "hello from the script" in self.host.text(run_id), self.host.text(run_id)

    def streamed(self) -> None:
        run_id = self.host.send(self.name, "c1", "HELLO again")
        completed(self.host, run_id)
        deltas = [r for r in self.host.results(run_id) if r["type"] == "message.delta"]
        assert len(deltas) >= (1 if self.name == "gemini" else 2), deltas

    def second_turn(self) -> None:
        run_id = self.host.send(self.name, "c1", "RECALL")
        completed(self.host, run_id)
        assert "I remember NONCE-one" in self.host.text(run_id), self.host.text(run_id)

    def other_conversation(self) -> None:
        run_id = self.host.send(self.name, "c2", "RECALL")
        completed(self.host, run_id)
        assert "I remember nothing" in self.host.text(run_id), self.host.text(run_id)

    def allowed(self) -> None:
        run_id = self.host.send(self.name, "c1", "RUN touch allowed-file && echo it-ran")
        approval = self.host.approval(run_id)
        self.host.answer(approval, "allow")
        completed(self.host, run_id)
        assert approval["action"].startswith("harness."), approval
        assert "touch allowed-file" in json.dumps(approval), approval
        assert self.files("allowed-file"), "the command did not run"
        kinds = [r["type"] for r in self.host.results(run_id)]
        assert "tool.call.started" in kinds and "tool.call.completed" in kinds, kinds

    def denied(self) -> None:
        run_id = self.host.send(self.name, "c1", "RUN touch denied-file && echo it-ran")
        self.host.answer(self.host.approval(run_id), "deny")
        self.host.ended(run_id)
        assert not self.files("denied-file"), "the command ran"

    def answered(self, run_id: str, decision: str) -> list[str]:
        """Gives the same answer to every question of the run; the actions that were asked about."""
        seen: dict[str, str] = {}
        def over() -> bool:
            for approval in self.host.call("GET", f"/v1/approvals?status=pending&run_id={run_id}")["items"]:
                seen[approval["approval_id"]] = approval["action"]
                self.host.answer(approval, decision)
            return self.host.call("GET", f"/v1/runs/{run_id}")["status"] not in ("queued", "running")
        self.host.wait("end of the run", over)
        return list(seen.values())

    def read_tool(self) -> None:
        run_id = self.host.send(self.name, "c1", "LOOKUP")
        actions = self.answered(run_id, "allow")
        assert not [action for action in actions if not action.startswith("harness.")], actions
        assert "lookup found 4711" in self.host.text(run_id), (self.host.text(run_id), self.offered())
        self.called(run_id, "probe.lookup")

    def write_tool(self) -> None:
        run_id = self.host.send(self.name, "c1", "STORE")
        actions = self.answered(run_id, "allow")
        assert [action for action in actions if not action.startswith("harness.")], actions
        assert "store found 4711" in self.host.text(run_id), self.host.text(run_id)
        self.called(run_id, "probe.store")

    def called(self, run_id: str, tool: str) -> None:
        def found() -> bool:
            audit = self.host.call("GET", f"/v1/audit?run_id={run_id}&limit=100")["items"]
            return any(tool in json.dumps(record) for record in audit if record["method"] == "tools.call")
        self.host.wait(f"audit of {tool}", found)

    def offered(self) -> list[str]:
        """The tools of the last request that had any."""
        if not self.log.exists():
            return []
        names = [re.findall(r'"name": ?"([^"]+)"', json.dumps(json.loads(line)["body"].get("tools", [])))
                 for line in self.log.read_text().splitlines() if isinstance(json.loads(line).get("body"), dict)]
        return next((sorted(set(some)) for some in reversed(names) if some), [])

    def skill(self) -> None:
        assert SKILL in self.log.read_text(), "the model was not told of the skill"

    def file_out(self) -> None:
        run_id = self.host.send(self.name, "c1", "RUN printf made > report.txt && echo it-ran")
        self.answered(run_id, "allow")
        created = [r["data"] for r in self.host.results(run_id) if r["type"] == "artifact.created"]
        assert [data["name"] for data in created] == ["report.txt"], created

    def picture_in(self) -> None:
        contents = [{"type": "text", "text": "PICTURE"},
                    {"type": "image", "data_base64": PICTURE, "mime_type": "image/png", "name": "a.png"}]
        run_id = self.host.send(self.name, "c1", "PICTURE", contents=contents)
        completed(self.host, run_id)
        assert "I saw a picture" in self.host.text(run_id), self.host.text(run_id)
        if self.log.exists():
            assert re.search(r"image/png|iVBORw0K", self.log.read_text()), "the model got no picture"

    def cancel(self) -> None:
        run_id = self.host.send(self.name, "c1", "SLOW")
        self.host.wait("delta", lambda: any("slow" in json.dumps(r) for r in self.host.results(run_id)))
        begin = time.time()
        self.host.call("POST", f"/v1/runs/{run_id}/cancel")
        run = self.host.ended(run_id)
        assert run["status"] == "cancelled", run
        assert time.time() - begin < 5, time.time() - begin
        # The session can be used again, whatever the harness did.
        self.second_turn()

    def harness_killed(self) -> None:
        folder = str(self.host.folder)
        harness = [pid for pid in processes(folder) if b"GREENROOM_SESSION" in environ(pid)]
        assert harness, "no harness process"
        marks = {mark for pid in harness for mark in environ(pid).split(b"\0") if mark.startswith(b"GREENROOM_SESSION=")}
        for pid in harness:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                # It has ended with the one before.
                pass
        everyone = lambda: [environ(int(entry.name)) for entry in pathlib.Path("/proc").iterdir() if entry.name.isdigit()]  # noqa: E731
        self.host.wait("end of the harness", lambda: not any(mark in one.split(b"\0") for one in everyone() for mark in marks))
        self.loaded()

    def host_killed(self) -> None:
        self.host.kill()
        self.host.start()
        self.loaded()

    def loaded(self) -> None:
        """The next turn remembers because its session was loaded, not because of a summary."""
        if self.name == "gemini":
            # It cannot load a session within the clock minute in which it was created or loaded.
            minute = int(time.time() // 60)
            self.host.wait("next minute", lambda: int(time.time() // 60) > minute)
            # Also later its `session/load` fails at times: the conversation then continues with a summary.
            return self.second_turn()
        run_id = self.host.send(self.name, "c1", "RECALL")
        completed(self.host, run_id)
        text = self.host.text(run_id)
        assert "I remember NONCE-one" in text and "could not load" not in text, text

    def projection(self) -> None:
        found = self.files(".greenroom/agent-context.json")
        assert found, "no agent-context.json"
        context = json.loads(found[0].read_text())
        assert context["schema"] == "langbot.agent_runner.external_harness_context.v1", context
        text = found[0].read_text()
        assert "run_token" not in text and CANARY not in text, "a secret in the context"

    def no_process_left(self) -> None:
        self.host.stop()
        self.host.wait("end of all processes", lambda: not processes(str(self.host.folder)))

    def files(self, name: str) -> list[pathlib.Path]:
        return list((self.host.folder / "data/harness" / self.name / "workspaces").glob(f"*/work/{name}"))


def environ(pid: int) -> bytes:
    try:
        return pathlib.Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def alive(pid: int) -> bool:
    try:
        return ") Z " not in pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


STEPS = ["text_turn", "streamed", "second_turn", "other_conversation", "read_tool", "write_tool", "allowed", "denied",
         "file_out", "picture_in", "cancel", "skill", "projection", "harness_killed", "host_killed", "no_process_left"]


# What a harness does not do; the guide says so as well.
LACKS = {"goose": {"picture_in"}}


def configuration(name: str, server: str) -> str:
    words = [str(MODULES / word) if (MODULES / word).exists() else word for word in COMMANDS[name]]
    command = json.dumps(words)
    grant = 'harness = { read = "always", search = "always", edit = "ask", execute = "ask", other = "ask" }'
    if KEYS == "own":
        network, config, models = json.dumps([server]), f'keys = "own", model = "scripted", base_url = "http://{server}"', ""
        table = ""
    else:
        network, config, models = "false", 'workspace = "conversation"', 'models = ["brain"]\n'
        table = (f'[models.brain]\nprovider = "openai"\nmodel = "gpt-4.1"\nbase_url = "http://{server}/v1"\n'
                 f'api_key = {{ file = "key" }}\nallow_private = true\n')
    return (f'[limits]\ncancel_grace_s = 2\n{table}'
            f'[runners.{name}]\nwire = "acp"\nprofile = "{name}"\ncommand = {command}\nnetwork = {network}\n'
            f'[agents.{name}]\nrunner = "plugin:harness/{name}/default"\nevents = []\nconfig = {{ {config} }}\n'
            f'[agents.{name}.grant]\n{models}{grant}\ntools = ["probe.*"]\nskills = ["whales"]\nrisk = {{ write = "ask" }}\n'
            f'[tools.probe]\ncommand = ["python3", "probe.py"]\nnetwork = false\n'
            f'[tools.know_how]\nkind = "skills"\ndir = "skills"\n')


def script() -> str:
    """The rules, with one for each name that a tool may have."""
    # First: a summary of the conversation has the words of all other rules.
    rules = ['[[rule]]\nwhen = { text = "an earlier part that you do not remember", context = "NONCE-one" }\n'
             'answer = "I remember NONCE-one"\n']
    for word, tool in (("LOOKUP", "lookup"), ("STORE", "store")):
        for prefix in PREFIXES:
            for name in (f"{prefix}probe.{tool}", f"{prefix}probe_{tool}"):
                rules.append(f'[[rule]]\nwhen = {{ text = "{word}", offers = "{name}", tool_result = false }}\n'
                             f'answer = [{{ call = "{name}", args = {{ key = "a" }} }}]\n')
    return "\n".join(rules) + "\n" + (HERE / "script.toml").read_text()


def drive(name: str) -> dict[str, str]:
    outcome: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="greenroom-harness-") as folder:
        root = pathlib.Path(folder)
        log = root / "requests.jsonl"
        (root / "script.toml").write_text(script())
        (root / "probe.py").write_text(PROBE)
        (root / "skills/whales").mkdir(parents=True)
        (root / "skills/whales/SKILL.md").write_text(f"---\nname: whales\ndescription: {SKILL}\n---\nCount them.\n")
        arguments = [PROGRAM, "dev", "model-server", "--script", str(root / "script.toml"), "--log", str(log)]
        server = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
        try:
            address = re.search(r"127\.0\.0\.1:\d+", server.stdout.readline()).group()
            (root / "key").write_text(CANARY)
            (root / "greenroom.toml").write_text(configuration(name, address))
            host = Host(root)
            host.start()
            scene = Scene(name, host, log)
            try:
                for step in STEPS:
                    begin = time.time()
                    try:
                        getattr(scene, step)()
                        outcome[step] = f"ok {time.time() - begin:.1f}s"
                        if step in LACKS.get(name, ()):
                            outcome[step] = "FAILED it holds now: correct the guide"
                    except Exception as error:  # noqa: BLE001
                        lacks = step in LACKS.get(name, ())
                        outcome[step] = f"{'not offered' if lacks else 'FAILED'} {str(error)[:400]}"
                    print(f"{name:10} {step:20} {outcome[step]}", flush=True)
            finally:
                if host.process.poll() is None:
                    host.kill()
            if any(value.startswith("FAILED") for value in outcome.values()):
                print((root / "log").read_text()[-6000:])
                if os.environ.get("REQUESTS"):
                    pathlib.Path(os.environ["REQUESTS"]).write_text(log.read_text() if log.exists() else "")
        finally:
            server.kill()
            server.wait()
    return outcome


def main() -> int:
    outcomes = {name: drive(name) for name in NAMES}
    failed = [f"{name}.{step}" for name, steps in outcomes.items() for step, text in steps.items() if text.startswith("FAILED")]
    print(f"{len(failed)} failed: {', '.join(failed)}" if failed else f"{', '.join(NAMES)}: all steps hold ({KEYS} keys)")
    return 1 if failed else 0


sys.exit(main())
