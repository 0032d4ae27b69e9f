"""The official plugins: how each is configured, what it says, and what its service must have been asked.

A cell that a plugin does not have is in `without`, with the reason."""

import base64
import dataclasses
import json
import random
import re
import socket
import typing

from fakes.base import TOKEN
from fakes.services import CONVERSATION, Coze, Dashscope, Deerflow, Dify, Langflow, N8n, Tbox, Weknora
from fakes.tls import CERTIFICATE
from hosts.played import PNG

CELLS = ["loads", "text", "streamed", "tool", "history", "state", "picture", "file", "error", "cancel"]
ONE_CHUNK = "it sends its answer as one chunk"
NO_GATEWAY = "it offers its service no tools"
TEXT_ONLY = "it passes on text only"


@dataclasses.dataclass
class Row:
    name: str
    plugin: str
    # Of the service, or the name of a command line agent.
    fake: typing.Any
    # From the address of the service, the working folder and the port for the MCP gateway.
    config: typing.Callable
    says: str
    # Whether the second turn continued the first, from the requests of both.
    state: typing.Callable
    folder: str = ""
    picture: typing.Callable | None = None
    file: typing.Callable | None = None
    without: dict = dataclasses.field(default_factory=dict)
    # Its environment, from the fake and the working folder.
    env: typing.Callable = lambda fake, folder: {}
    requirements: list = dataclasses.field(default_factory=list)
    # What the host they were written for is not compared on, with the reason.
    alone: str = ""
    # What a user writes first.
    asks: str = "hi"
    # What it says to that, if it is another answer.
    first: str = ""


def assets(port):
    return {"langbot-assets-enabled": True, "langbot-assets-gateway-host": "127.0.0.1",
            "langbot-assets-gateway-port": port}


def uploaded(fake, data):
    return any(data in body for body in fake.bodies("/upload"))


def cli(name):
    return lambda url, folder, port, python: {
        "command": f"{python} {folder}/fakes/cli.py {name}", "workspace": str(folder), "provider": "custom",
        "acp-command": f"{python} {folder}/fakes/cli.py {name}", "append-run-scope-prompt": False,
        "env-json": json.dumps({"CODEX_HOME": f"{folder}/.codex"})}


def dify(kind):
    return lambda url, folder, port, python: {"base-url": f"{url}/v1", "app-type": kind, "api-key": "k",
                                              "base-prompt": "look", **assets(port)}


def same(name):
    return lambda first, second: bool(first[-1].get(name)) and first[-1].get(name) == second[-1].get(name)


FILE = ("a.txt", b"some text")
ROWS = [
    Row("n8n", "langbot/n8n-agent", N8n,
        lambda url, folder, port, python: {"webhook-url": f"{url}/hook", "auth-type": "none", **assets(port)},
        "Hello from n8n", lambda first, second: all(same(key)(first, second) for key in ("conversation_id", "session_id")),
        without={"picture": TEXT_ONLY, "file": TEXT_ONLY}),
    Row("dify-chat", "langbot/dify-agent", Dify, dify("chat"), "Hello from dify",
        lambda first, second: second[-1]["conversation_id"] == CONVERSATION, folder="dify-agent",
        picture=lambda fake: uploaded(fake, PNG), file=lambda fake: uploaded(fake, FILE[1]),
        without={"streamed": ONE_CHUNK}),
    Row("dify-agent", "langbot/dify-agent", Dify, dify("agent"), "Hello from dify",
        lambda first, second: second[-1]["conversation_id"] == CONVERSATION, folder="dify-agent", asks="think",
        picture=lambda fake: uploaded(fake, PNG), file=lambda fake: uploaded(fake, FILE[1]),
        first=" from dify"),
    Row("dify-workflow", "langbot/dify-agent", Dify, dify("workflow"), "Hello from dify",
        lambda first, second: first[-1]["inputs"]["langbot_session_id"] == second[-1]["inputs"]["langbot_session_id"],
        folder="dify-agent", picture=lambda fake: uploaded(fake, PNG), file=lambda fake: uploaded(fake, FILE[1]),
        without={"streamed": ONE_CHUNK}),
    Row("coze", "langbot/coze-agent", Coze,
        lambda url, folder, port, python: {"api-key": "k", "bot-id": "b", "api-base": url, **assets(port)},
        "Hello from coze", lambda first, second: second[-1].get("?") == "conversation_id=coze-1",
        picture=lambda fake: uploaded(fake, PNG), file=lambda fake: uploaded(fake, FILE[1]),
        without={"streamed": ONE_CHUNK}),
    Row("langflow", "langbot/langflow-agent", Langflow,
        lambda url, folder, port, python: {"base-url": url, "api-key": "k", "flow-id": "f", **assets(port)},
        "Hello from langflow", same("session_id"), without={"picture": TEXT_ONLY, "file": TEXT_ONLY}),
    Row("dashscope", "langbot/dashscope-agent", Dashscope,
        lambda url, folder, port, python: {"app-type": "agent", "api-key": "k", "app-id": "app", **assets(port)},
        "Hello from dashscope", lambda first, second: second[-1]["input"].get("session_id") == "ds-1",
        env=lambda fake, folder: {"DASHSCOPE_HTTP_BASE_URL": f"{fake.url}/api/v1"}, requirements=["dashscope"],
        without={"picture": TEXT_ONLY, "file": TEXT_ONLY},
        alone="its library takes its address from the environment, which LangBot's runtime does not pass on"),
    Row("deerflow", "langbot/deerflow-agent", Deerflow,
        lambda url, folder, port, python: {"api-base": url, "assistant-id": "lead_agent"},
        "Hello from deerflow.", lambda first, second: len(second) == 1,
        picture=lambda fake: base64.b64encode(PNG) in fake.requests[-1][1],
        without={"tool": NO_GATEWAY, "history": NO_GATEWAY, "file": "it passes on text and pictures only"}),
    Row("weknora", "langbot/weknora-agent", Weknora,
        lambda url, folder, port, python: {"base-url": url, "api-key": "k", "app-type": "agent"},
        "Hello from weknora", lambda first, second: len(second) == 1,
        without={"tool": NO_GATEWAY, "history": NO_GATEWAY, "picture": TEXT_ONLY, "file": TEXT_ONLY}),
    Row("tbox", "langbot/tbox-agent", Tbox, lambda url, folder, port, python: {"api-key": "k", "app-id": "app"},
        "Hello from tbox", lambda first, second: second[-1].get("conversationId") == "tbox-1",
        picture=lambda fake: uploaded(fake, PNG), requirements=["tboxsdk"],
        env=lambda fake, folder: {"HTTPS_PROXY": fake.url, "SSL_CERT_FILE": str(folder / CERTIFICATE)},
        without={"tool": NO_GATEWAY, "history": NO_GATEWAY, "file": "it passes on text and pictures only"},
        alone="its library has a fixed address, which is replaced through the environment"),
    Row("acp", "langbot/acp-agent-runner", "acp", cli("acp"), "Hello from acp",
        lambda first, second: second[0]["method"] == "session/load" and second[0]["session"] == first[-1]["session"],
        folder="acp-agent-runner",
        picture=lambda fake: any(block["type"] == "image" and base64.b64decode(block["data"]) == PNG
                                 for block in fake.asked[-1]["prompt"]),
        file=lambda fake: "c29tZSB0ZXh0" in json.dumps(fake.asked[-1]) or "some text" in json.dumps(fake.asked[-1])),
    Row("claude-code", "langbot/claude-code-agent", "claude", cli("claude"), "Hello from claude",
        lambda first, second: bool(first[-1]["session"]) and first[-1]["session"] == second[-1]["resume"],
        without={"picture": TEXT_ONLY, "file": TEXT_ONLY}),
    Row("codex", "langbot/codex-agent", "codex", cli("codex"), "Hello from codex",
        lambda first, second: second[0]["method"] == "thread/resume" and second[0]["thread"] == first[-1]["thread"],
        without={"picture": TEXT_ONLY, "file": TEXT_ONLY}),
]


class Cli:
    """The command line agent of one row: what it was asked is in its working folder."""

    def __init__(self, folder):
        self.file = folder / "asked.jsonl"
        self.seen = 0

    @property
    def all(self):
        return [json.loads(line) for line in self.file.read_text().splitlines()] if self.file.exists() else []

    @property
    def asked(self):
        return self.all[self.seen:]

    requests = asked

    def forget(self):
        self.seen = len(self.all)


def asked(fake):
    """What the service was asked since it was told to forget."""
    if isinstance(fake, Cli):
        return fake.asked
    return [parsed(path, body) for path, body in fake.requests]


def parsed(path, body):
    """The body, with the query of the address as `?`."""
    try:
        read = json.loads(body)
    except ValueError:
        read = multipart(body)
    query = path.partition("?")[2]
    return {**read, "?": query} if query else read


def multipart(body):
    """The files of a form, without what is random in it."""
    names = re.findall(rb'name="([^"]+)"(?:; filename="([^"]+)")?', body)
    return {"form": sorted(f"{name.decode()} {file.decode()}" for name, file in names),
            "picture": PNG in body, "file": FILE[1] in body}


def forget(fake):
    fake.forget() if isinstance(fake, Cli) else fake.requests.clear()


NAMED = {"user", "user_id", "conversation_id", "session_id", "sender_id", "launcher_id", "session", "thread", "resume",
         "langbot_session_id", "langbot_conversation_id", "langbot_msg_create_time", "thread_id", TOKEN, "msg_create_time",
         "title", "method"}


def comparable(value, name=""):
    """A request without what differs from run to run and from host to host: ids, times, tokens."""
    if isinstance(value, dict) and name != TOKEN:
        # The conversation of a first turn: none here, LangBot's own there; the reverse among the variables.
        skipped = {"?"} | ({"conversation_id"} if name == "inputs" else set())
        return {key: comparable(one, key) for key, one in value.items() if key not in skipped}
    if isinstance(value, list):
        return [comparable(one, name) for one in value]
    if name in NAMED and value:
        return "…"
    return value


def free_port():
    """Below the ports that the system gives to others on its own, which may take it before the plugin does."""
    while True:
        port = random.randrange(20000, 30000)
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
