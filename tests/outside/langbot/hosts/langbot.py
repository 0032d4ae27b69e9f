"""The host that the plugins were written for, as it is: its plugin runtime and its server, driven over its HTTP API and
the WebSocket of its web page, which shows what a user would see.

PYTHON is an interpreter with `langbot`, `langbot-plugin` and `websockets`. Nothing of them is changed; a plugin whose
manifest lacks the version that this host asks for is packed with one."""

import base64
import io
import json
import pathlib
import random
import subprocess
import time
import urllib.request
import zipfile

from .played import PNG, Played

CHAT = pathlib.Path(__file__).parent / "langbot_chat.py"
# Its development branch ends every run with an error of its own, after it has shown and stored everything.
OWN_ERROR = "Agent runner execution failed."
USER = {"user": "a@example.com", "password": "Secret-123456"}


def packed(source):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for path in pathlib.Path(source).rglob("*"):
            if not path.is_file() or {"__pycache__", ".git", "tests"} & set(path.parts):
                continue
            content = path.read_bytes()
            if path.name == "manifest.yaml" and path.parent == pathlib.Path(source):
                head = content.split(b"spec:")[0]
                if b"\n  version:" not in head:
                    content = content.replace(b"metadata:\n", b"metadata:\n  version: 0.1.0\n", 1)
            archive.writestr(str(path.relative_to(source)), content)
    return data.getvalue()


class Langbot:
    name = "LangBot"

    def __init__(self, python, folder, models, tools):
        # It takes this port and the two after it.
        self.python, self.folder, self.port = str(python), pathlib.Path(folder), random.randrange(15000, 19000, 3)
        self.models, self.tools, self.wanted = models, tools, []
        self.pipelines, self.chats, self.processes = {}, {}, []

    def add(self, agent, source, plugin, _python, config, _grant, **_):
        self.wanted.append((agent, source, f"plugin:{plugin}/default", config))

    def workspace(self, agent):
        folder = self.folder / f"workspace-{agent}"
        folder.mkdir(exist_ok=True)
        return folder

    def start(self):
        try:
            self.begin()
        except BaseException:
            self.end()
            raise

    def begin(self):
        (self.folder / "data").mkdir(parents=True, exist_ok=True)
        (self.folder / "data/config.yaml").write_text(json.dumps(configuration(self.folder, self.port)))
        self.spawn("runtime", "-m", "langbot_plugin.cli.__init__", "rt", "--ws-control-port", str(self.port + 1),
                   "--ws-debug-port", str(self.port + 2))
        self.spawn("server", "-m", "langbot", "--standalone-runtime")
        self.token = None
        until = time.time() + 300
        while self.token is None:
            assert time.time() < until, (self.folder / "server.log").read_text()[-4000:]
            try:
                self.call("/api/v1/user/init", USER)
                self.token = self.call("/api/v1/user/auth", USER)["token"]
            except OSError:
                time.sleep(0.5)
        self.space = self.call("/api/v1/workspaces")["workspaces"][0]["uuid"]
        self.resources()
        for agent, source, runner, config in self.wanted:
            self.install(agent, source, runner, config)

    def resources(self):
        """The models and the tools, as an operator adds them."""
        self.ids = {}
        for name, (url, model) in self.models.items():
            provider = self.call("/api/v1/provider/providers", {
                "name": name, "requester": "openai-chat-completions", "base_url": f"{url}/v1", "api_keys": ["none"]})
            self.ids[name] = self.call("/api/v1/provider/models/llm", {
                "name": model, "provider_uuid": provider["uuid"], "abilities": ["vision", "func_call"],
                "extra_args": {}})["uuid"]
        for name, url in self.tools.items():
            self.call("/api/v1/mcp/servers", {"name": name, "enable": True, "mode": "http",
                                              "extra_args": {"url": f"{url}/mcp", "headers": {}, "timeout": 10}})

    def spawn(self, name, *arguments):
        log = open(self.folder / f"{name}.log", "w")
        self.processes.append(subprocess.Popen([self.python, *arguments], cwd=self.folder, stdout=log, stderr=log))

    def call(self, path, body=None, method=None, kind="application/json"):
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        headers = {"content-type": kind, **({"authorization": f"Bearer {self.token}"} if self.token else {})}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            read = json.loads(answer.read())
        assert read["code"] == 0, read
        return read["data"]

    def install(self, agent, source, runner, config):
        boundary = "greenroom-boundary"
        file = packed(source)
        body = (f'--{boundary}\r\ncontent-disposition: form-data; name="file"; filename="{agent}.lbpkg"\r\n'
                "content-type: application/zip\r\n\r\n").encode() + file + f"\r\n--{boundary}--\r\n".encode()
        if not any(one == runner for one, _ in self.pipelines.values()):
            task = self.call("/api/v1/plugins/install/local", body, kind=f"multipart/form-data; boundary={boundary}")
            state = {}
            until = time.time() + 120
            while not state.get("done"):
                assert time.time() < until, f"{agent} does not install"
                time.sleep(0.2)
                state = self.call(f"/api/v1/system/tasks/{task['task_id']}")["runtime"]
            assert not state["exception"], state["exception"]
        if "model" in config:
            names = [config["model"]["primary"], *config["model"]["fallbacks"]]
            ids = [self.ids[name] for name in names]
            config = {**config, "model": {"primary": ids[0], "fallbacks": ids[1:]}}
        identity = self.call("/api/v1/pipelines", {"name": agent, "description": "", "config": {}})["uuid"]
        pipeline = self.call(f"/api/v1/pipelines/{identity}")["pipeline"]["config"]
        pipeline["ai"] = {"runner": {"id": runner, "expire-time": 0}, "runner_config": {runner: config}}
        pipeline["output"]["misc"].update({"at-sender": False, "quote-origin": False, "exception-handling": "show-error"})
        self.call(f"/api/v1/pipelines/{identity}", {"name": agent, "config": pipeline}, "PUT")
        self.pipelines[agent] = (runner, identity)

    def loads(self, agent):
        return agent in self.pipelines

    def chat(self, agent, conversation):
        """A page of the web chat: one connection is one conversation."""
        key = (agent, conversation)
        if key not in self.chats:
            # It allows 32 pages.
            for old in list(self.chats)[:-8]:
                self.close(self.chats.pop(old))
            address = f"ws://127.0.0.1:{self.port}/api/v1/pipelines/{self.pipelines[agent][1]}/ws/connect"
            child = subprocess.Popen([self.python, str(CHAT), address, self.token, self.space], text=True,
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self.chats[key] = child
            assert child.stdout.readline().strip() == "ready"
        return self.chats[key]

    def play(self, agent, conversation, text, picture=False, file=None):
        chain = [{"type": "Plain", "text": text}]
        if picture:
            chain.append({"type": "Image", "base64": "data:image/png;base64," + base64.b64encode(PNG).decode()})
        if file:
            chain.append({"type": "File", "name": file[0], "size": len(file[1]),
                          "base64": "data:text/plain;base64," + base64.b64encode(file[1]).decode()})
        chat = self.chat(agent, conversation)
        chat.stdin.write(json.dumps(chain) + "\n")
        chat.stdin.flush()
        told = json.loads(chat.stdout.readline())
        answers = []
        for texts in told["messages"]:
            shown = [text for text in texts if text and text != OWN_ERROR]
            answers += shown[-1:] or ([OWN_ERROR] if OWN_ERROR in texts else [])
        return Played("shown", answers, [text for texts in told["messages"] for text in texts if text != OWN_ERROR])

    def close(self, chat):
        chat.kill()
        chat.wait()

    def end(self):
        for chat in self.chats.values():
            self.close(chat)
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()


def configuration(folder, port):
    """The smallest that it starts with, all in one folder."""
    folder = str(folder)
    return {
        "admins": [], "api": {"port": port, "webhook_prefix": f"http://127.0.0.1:{port}", "extra_webhook_prefix": ""},
        "command": {"enable": True, "prefix": ["!"], "privilege": {}},
        "concurrency": {"pipeline": 20, "session": 1}, "proxy": {"http": "", "https": ""},
        "system": {"instance_id": "", "edition": "community", "recovery_key": "", "allow_modify_login_info": True,
                   "disabled_adapters": [], "limitation": {"max_bots": -1, "max_pipelines": -1, "max_extensions": -1},
                   "task_retention": {"completed_limit": 200}, "jwt": {"expire": 604800, "secret": "only-for-this-test"}},
        "database": {"use": "sqlite", "sqlite": {"path": f"{folder}/data/langbot.db"}},
        "vdb": {"use": "chroma", "chroma": {"path": f"{folder}/chroma"}},
        "storage": {"use": "local", "local": {"path": f"{folder}/storage"},
                    "cleanup": {"enabled": False, "check_interval_hours": 1, "uploaded_file_retention_days": 7,
                                "log_retention_days": 3}},
        "plugin": {"enable": True, "runtime_ws_url": f"ws://127.0.0.1:{port + 1}/control/ws",
                   "enable_marketplace": False, "display_plugin_debug_url": "",
                   "binary_storage": {"max_value_bytes": 10485760}},
        "monitoring": {"auto_cleanup": {"enabled": False, "retention_days": 30, "check_interval_hours": 1,
                                        "delete_batch_size": 1000}},
        "box": {"enabled": False},
        "space": {"url": "http://127.0.0.1:9", "models_gateway_api_url": "http://127.0.0.1:9/v1", "oauth_authorize_url":
                  "http://127.0.0.1:9", "disable_models_service": True, "disable_telemetry": True},
    }
