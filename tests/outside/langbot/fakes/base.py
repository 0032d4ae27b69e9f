"""A service on loopback that keeps the requests it got, and the words that all fakes understand.

    break    the service refuses
    wait     it sends one piece, then nothing until `released` is set or three seconds have passed
    tool     it calls the first tool of the run over the plugin's MCP gateway and answers with the outcome
    history  it reads the conversation there
"""

import json
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# The name under which plugins hand the token of their MCP gateway to the service.
TOKEN = "langbot_asset_run_token"


class Fake:
    """`requests` has (path, body) of each request."""

    # The port of the plugin's MCP gateway.
    gateway = None

    def __init__(self):
        self.requests = []
        self.released = threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def bodies(self, ending=""):
        return [body for path, body in self.requests if path.split("?")[0].endswith(ending)]

    def json_bodies(self, ending=""):
        return [json.loads(body) for body in self.bodies(ending)]

    def words(self, text, token, name):
        """The pieces of the answer to a text."""
        if "tool" in text and token:
            return ["tool: ", call_first_tool(self.mcp, token)]
        if "history" in text and token:
            return ["history: ", read_history(self.mcp, token)]
        return ["Hello", " from", f" {name}"]

    def mcp(self, token, name, arguments):
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": name, "arguments": {**arguments, "run_token": token}}}
        request = urllib.request.Request(f"http://127.0.0.1:{self.gateway}/mcp", json.dumps(body).encode(),
                                         {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.loads(answer.read())["result"]


def call_first_tool(mcp, token):
    """Calls the tool `echo` as an agent would: list, look, call."""
    tools = mcp(token, "langbot_list_assets", {})["structuredContent"]["tools"]
    name = next((tool["tool_name"] for tool in tools if "echo" in tool["tool_name"]), None)
    if name is None:
        return f"no tool in {tools}"
    detail = mcp(token, "langbot_get_tool_detail", {"tool_name": name})
    if detail.get("isError"):
        return f"no detail: {detail}"
    answer = mcp(token, "langbot_call_tool", {"tool_name": name, "parameters": {"text": "pong"}})
    return "echoed pong" if "pong" in json.dumps(answer) and not answer.get("isError") else f"failed: {answer}"


def read_history(mcp, token):
    answer = mcp(token, "langbot_history_page", {"limit": 10})
    if answer.get("isError"):
        return f"failed: {answer}"
    items = answer["structuredContent"]["items"]
    return " < ".join(f"{item['role']} {item['content']}" for item in items)


def _handler(fake):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            fake.requests.append((self.path, body))
            try:
                fake.answer(self, self.path, body)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def do_CONNECT(self):
            fake.connected(self)

        def whole(self, status, body):
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def pieces(self, kind, pieces, waits=False):
            """Sends pieces one by one; with `waits` it stops after the first."""
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for number, piece in enumerate([*pieces, ""]):
                data = piece.encode()
                self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
                self.wfile.flush()
                if waits and number == 0:
                    fake.released.wait(3)

        def sse(self, events, waits=False):
            """Events as JSON, or as (name, JSON)."""
            lines = []
            for event in events:
                name = ""
                if isinstance(event, tuple):
                    name, event = f"event: {event[0]}\n", event[1]
                lines.append(f"{name}data: {json.dumps(event)}\n\n")
            self.pieces("text/event-stream", lines, waits)

    return Handler
