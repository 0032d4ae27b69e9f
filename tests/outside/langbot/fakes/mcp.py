"""An MCP server over HTTP with two tools, `echo` and `slow`; it keeps how many calls ran at the same time."""

import json
import threading

from .base import Fake


class Mcp(Fake):
    def __init__(self):
        super().__init__()
        self.calls = []
        self.now = 0
        self.most = 0
        self.lock = threading.Lock()
        self.all = threading.Barrier(3)

    def answer(self, handler, path, body):
        asked = json.loads(body)
        result = self.result(asked)
        if "id" not in asked:
            handler.send_response(202)
            handler.send_header("content-length", "0")
            return handler.end_headers()
        handler.whole(200, {"jsonrpc": "2.0", "id": asked["id"], **result})

    def result(self, asked):
        method, params = asked["method"], asked.get("params") or {}
        if method == "initialize":
            return {"result": {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                               "serverInfo": {"name": "box", "version": "1"}}}
        if method == "tools/list":
            schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
            return {"result": {"tools": [{"name": name, "description": f"Says it again ({name}).", "inputSchema": schema}
                                         for name in ("echo", "slow")]}}
        if method == "tools/call":
            self.calls.append(params["name"])
            if params["name"] == "slow":
                self.together()
            return {"result": {"content": [{"type": "text", "text": params["arguments"]["text"]}], "isError": False}}
        return {"result": {}} if method.startswith("notifications/") or method == "ping" else {
            "error": {"code": -32601, "message": "method not found"}}

    def together(self):
        """Returns when three calls are here, or after two seconds."""
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        try:
            self.all.wait(2)
        except threading.BrokenBarrierError:
            self.all.reset()
        with self.lock:
            self.now -= 1
