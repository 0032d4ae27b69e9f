"""Small fakes of the services behind the official plugins. Each keeps the requests it got."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


# Dify's ids are UUIDs, and its plugin insists on that.
CONVERSATION = "0e5f1c1e-5c3f-4a39-9a33-3a4b5ce0a001"


class Fake:
    """A service on loopback; `requests` has (path, body) of each request."""

    def __init__(self):
        self.requests = []
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                fake.requests.append((self.path, body))
                fake.answer(self, self.path, body)

            def whole(self, status, body):
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def pieces(self, kind, pieces):
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("transfer-encoding", "chunked")
                self.end_headers()
                for piece in [*pieces, ""]:
                    data = piece.encode()
                    self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
                    self.wfile.flush()

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


class N8n(Fake):
    def answer(self, handler, path, body):
        if b"break" in body:
            return handler.whole(500, {"message": "workflow failed"})
        items = [{"type": "begin"}, *({"type": "item", "content": word} for word in ("Hello", " from", " n8n")),
                 {"type": "end"}]
        handler.pieces("application/json", [json.dumps(item) + "\n" for item in items])


class Dify(Fake):
    def answer(self, handler, path, body):
        if path.endswith("/files/upload"):
            return handler.whole(201, {"id": "file-1", "name": "a.png"})
        if b"break" in body:
            return handler.whole(400, {"code": "invalid_param", "message": "no"})
        words = ["Hello", " from", " dify"]
        events = [{"event": "message", "answer": word, "conversation_id": CONVERSATION} for word in words]
        events.append({"event": "message_end", "conversation_id": CONVERSATION, "metadata": {"usage": {}}})
        handler.pieces("text/event-stream", [f"data: {json.dumps(event)}\n\n" for event in events])


class Openai(Fake):
    """Chat completions: calls a tool if the last message asks for it, else repeats what it has seen."""

    def answer(self, handler, path, body):
        request = json.loads(body)
        last = request["messages"][-1]
        content = last.get("content") or ""
        text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
        if "break" in text:
            return handler.whole(400, {"error": {"message": "no", "type": "invalid_request_error"}})
        users = [one for one in request["messages"] if one["role"] == "user"]
        pictures = sum(isinstance(one["content"], list) and any(part["type"] == "image_url" for part in one["content"])
                       for one in users)
        reply = f"turn {len(users)} pictures {pictures}"
        call = None
        if last["role"] == "tool":
            reply = "the tool answered"
        elif "use the tool" in text and request.get("tools"):
            call = {"index": 0, "id": "call_1", "type": "function",
                    "function": {"name": request["tools"][0]["function"]["name"], "arguments": "{}"}}
        if not request.get("stream"):
            message = {"role": "assistant", "content": None if call else reply}
            if call:
                message["tool_calls"] = [call]
            return handler.whole(200, {"id": "1", "model": "m", "choices": [
                {"index": 0, "message": message, "finish_reason": "tool_calls" if call else "stop"}],
                "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}})
        if "long" in text:
            reply = "word " * 60 + "end"
        deltas = [{"tool_calls": [call]}] if call else [{"content": piece} for piece in (reply[at:at + 5] for at in range(0, len(reply), 5))]
        chunks = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if call else "stop"}]})
        lines = [f"data: {json.dumps({'id': '1', 'model': 'm', **chunk})}\n\n" for chunk in chunks]
        handler.pieces("text/event-stream", [*lines, "data: [DONE]\n\n"])
