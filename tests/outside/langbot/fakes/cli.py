"""Fakes of the command line agents: `claude`, `codex app-server` and an agent of the Agent Client Protocol.

    python cli.py claude|codex|acp …

Each keeps what it was asked in `asked.jsonl` of its working folder, and uses the run's MCP server if the prompt says so."""

import json
import pathlib
import subprocess
import sys
import time
import tomllib
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from fakes.base import call_first_tool, read_history  # noqa: E402


def note(**asked):
    with open("asked.jsonl", "a") as file:
        file.write(json.dumps(asked) + "\n")


def send(**message):
    print(json.dumps(message), flush=True)


class Stdio:
    """An MCP server that is started as a child process, or reached over HTTP."""

    def __init__(self, server):
        self.server, self.number, self.child = server, 0, None
        if server.get("command"):
            env = {**__import__("os").environ, **dict(server.get("env") or {})}
            self.child = subprocess.Popen([server["command"], *server.get("args", [])], env=env, text=True,
                                          stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self.ask("initialize", {"protocolVersion": "2025-03-26", "capabilities": {},
                                    "clientInfo": {"name": "fake", "version": "1"}})

    def ask(self, method, params):
        self.number += 1
        body = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        if self.child:
            self.child.stdin.write(json.dumps(body) + "\n")
            self.child.stdin.flush()
            return json.loads(self.child.stdout.readline())["result"]
        request = urllib.request.Request(self.server["url"], json.dumps(body).encode(), {
            "content-type": "application/json", **self.server.get("headers", {})})
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.loads(answer.read())["result"]

    def __call__(self, _token, name, arguments):
        return self.ask("tools/call", {"name": name, "arguments": arguments})


def words(prompt, servers, name):
    """The pieces of the answer. Only what the user wrote counts, not what the plugin adds to it."""
    server = next(iter(servers), None)
    if "use the tool" in prompt:
        return ["tool: ", call_first_tool(Stdio(server), None) if server else "no server"]
    if "read history" in prompt:
        return ["history: ", read_history(Stdio(server), None) if server else "no server"]
    return ["Hello", " from", f" {name}"]


def stall(prompt):
    if "wait" in prompt:
        time.sleep(3)


def claude(args):
    prompt = sys.stdin.read()
    named = {args[at]: args[at + 1] for at in range(len(args) - 1) if args[at].startswith("--")}
    note(prompt=prompt, session=named.get("--session-id"), resume=named.get("--resume"))
    if "break" in prompt:
        print("not signed in", file=sys.stderr)
        return 1
    servers = json.loads(pathlib.Path(named["--mcp-config"]).read_text())["mcpServers"].values() \
        if "--mcp-config" in named else []
    session = named.get("--session-id") or named.get("--resume")
    send(type="system", subtype="init", session_id=session)
    for word in words(prompt, servers, "claude"):
        send(type="assistant", session_id=session, message={"role": "assistant",
                                                             "content": [{"type": "text", "text": word}]})
        stall(prompt)
    return 0


def lines():
    for line in sys.stdin:
        if line.strip():
            yield json.loads(line)


def codex(_args):
    home = pathlib.Path(__import__("os").environ["CODEX_HOME"])
    config = home / "config.toml"
    servers = tomllib.loads(config.read_text()).get("mcp_servers", {}).values() if config.exists() else []
    thread = None
    for asked in lines():
        method, params, number = asked.get("method"), asked.get("params") or {}, asked.get("id")
        if method == "initialize":
            send(id=number, result={"userAgent": "fake"})
        elif method in ("thread/start", "thread/resume"):
            thread = params.get("threadId") or f"thread-{int(time.time() * 1e6)}"
            note(method=method, thread=thread)
            send(id=number, result={"thread": {"id": thread}})
        elif method == "turn/start":
            prompt = params["input"][0]["text"]
            note(prompt=prompt, thread=params["threadId"])
            send(id=number, result={"turn": {"id": "turn-1"}})
            send(method="turn/started", params={"threadId": thread, "turn": {"id": "turn-1"}})
            stall(prompt)
            if "break" in prompt:
                send(method="turn/completed", params={"threadId": thread, "turn": {
                    "status": "failed", "error": {"message": "model refused"}}})
                continue
            pieces = words(prompt, servers, "codex")
            for at, word in enumerate(pieces):
                item = {"type": "agentMessage", "id": f"i{at}", "text": word}
                if at == len(pieces) - 1:
                    item["phase"] = "final_answer"
                send(method="item/completed", params={"threadId": thread, "item": item})
            send(method="turn/completed", params={"threadId": thread, "turn": {"status": "completed"}})
    return 0


def acp(_args):
    servers = []
    for asked in lines():
        method, params, number = asked.get("method"), asked.get("params") or {}, asked.get("id")
        result = {}
        if method == "initialize":
            result = {"protocolVersion": 1, "agentCapabilities": {
                "loadSession": True, "promptCapabilities": {"image": True, "embeddedContext": True}}}
        elif method in ("session/new", "session/load", "session/resume"):
            servers = [{**server, "env": {one["name"]: one["value"] for one in server.get("env", [])}}
                       for server in params.get("mcpServers", [])]
            note(method=method, session=params.get("sessionId"))
            result = {"sessionId": params.get("sessionId") or f"session-{int(time.time() * 1e6)}"}
        elif method == "session/prompt":
            blocks = params["prompt"]
            note(prompt=blocks, session=params["sessionId"])
            prompt = blocks[0].get("text", "")
            if "break" in prompt:
                send(jsonrpc="2.0", id=number, error={"code": -32000, "message": "model refused"})
                continue
            for word in words(prompt, servers, "acp"):
                send(jsonrpc="2.0", method="session/update", params={"sessionId": params["sessionId"], "update": {
                    "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": word}}})
                stall(prompt)
            result = {"stopReason": "end_turn"}
        send(jsonrpc="2.0", id=number, result=result)
    return 0


if __name__ == "__main__":
    sys.exit({"claude": claude, "codex": codex, "acp": acp}[sys.argv[1]](sys.argv[2:]))
