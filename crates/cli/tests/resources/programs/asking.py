"""An MCP server on stdio that asks the user, knows only the older handshake, and has schemas of older drafts."""
import json, sys, threading

lock = threading.Lock()
answers = {}
FORM = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "title": "Your name", "minLength": 1},
        "size": {"type": "string", "enum": ["small", "large"], "default": "large"},
        "loud": {"type": "boolean", "default": False},
    },
}
OLD = {
    "$schema": "http://json-schema.org/draft-04/schema#",
    "type": "object",
    "required": ["count"],
    "properties": {
        "count": {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
        "note": {"type": "string"},
    },
}


def send(message):
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def ask(number, params):
    answers[number] = threading.Event(), []
    send({"id": number, "method": "elicitation/create", "params": params})
    answers[number][0].wait()
    return answers[number][1][0]


def call(id, name, args):
    if name == "form":
        said = ask(f"form-{id}", {"mode": "form", "message": "Who are you?", "requestedSchema": FORM})
    elif name == "url":
        said = ask(f"url-{id}", {"mode": "url", "message": "Pay here", "url": "https://pay.example/x", "elicitationId": "1"})
    elif name == "flood":
        params = {"mode": "url", "message": "javascript", "url": "javascript:alert(1)", "elicitationId": "1"}
        said = [ask(f"flood-{n}", params).get("error", {}).get("code") for n in range(500)]
        said = sorted(set(said))
    else:
        said = args
    send({"id": id, "result": {"content": [{"type": "text", "text": json.dumps(said)}]}})


for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method is None:
        if id in answers:
            answers[id][1].append(message.get("result", message))
            answers[id][0].set()
    elif method == "server/discover":
        # Whatever a server says to it: here a result that is none.
        send({"id": id, "result": {"hello": "there"}})
    elif method == "initialize":
        can_ask = message["params"]["capabilities"].get("elicitation")
        assert can_ask == {"form": {}, "url": {}}, can_ask
        send({"id": id, "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "asking", "version": "1"}}})
    elif method == "tools/list":
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("form", "url", "flood")]
        send({"id": id, "result": {"tools": tools + [{"name": "old", "inputSchema": OLD}]}})
    elif method == "tools/call":
        params = message["params"]
        threading.Thread(target=call, args=(id, params["name"], params.get("arguments"))).start()
    elif id is not None:
        send({"id": id, "error": {"code": -32601, "message": "unknown"}})
