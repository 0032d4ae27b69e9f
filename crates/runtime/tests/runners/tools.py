"""A test plugin that offers tools: standard library only, one thread per call.

`TOOLS` and `RUNNERS` are what it lists (JSON), `MODE` how it misbehaves.
"""
import json, os, sys, threading

lock = threading.Lock()
calls = {}
given_up = []
mode = os.environ.get("MODE", "")


def write(data):
    with lock:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def send(message):
    write((json.dumps({"jsonrpc": "2.0", **message}) + "\n").encode())


def tool(name, **more):
    return {"name": name, "input_schema": {"type": "object"}, **more}


NAMES = ["echo", "given_up", "wait", "late", "fail", "refuse", "crash", "big", "malformed", "garbage", "garbage_named"]
TOOLS = [tool(name, risk="read", timeout_s=5) for name in NAMES]
RUNNER = {"id": "plugin:test/tools/main", "name": "main", "label": {"en_US": "Tools"}}


def call(number, params):
    name, cancelled = params["tool_name"], calls[number]
    if name == "echo":
        send({"id": number, "result": {"result": {**params, "deadline_ms": "deadline_ms" in params}, "content": "echoed"}})
    elif name == "given_up":
        send({"id": number, "result": {"result": len(given_up)}})
    elif name == "wait":
        cancelled.wait()
    elif name == "late":
        cancelled.wait()
        send({"id": number, "result": {"result": "late"}})
    elif name == "fail":
        send({"id": number, "result": {"result": None, "error": {"code": "no_station", "message": "there is none"}}})
    elif name == "refuse":
        send({"id": number, "error": {"code": -32602, "message": "not like this", "data": {"why": "as asked"}}})
    elif name == "crash":
        os._exit(3)
    elif name == "big":
        send({"id": number, "result": {"result": "x" * params["parameters"]["bytes"]}})
    elif name == "malformed":
        send({"id": number, "result": ["not an object"]})
    elif name == "garbage":
        write(b"this is not json\n")
    elif name == "garbage_named":
        write(b'{"id":%d,"result":{broken\n' % number)


def handle(message):
    method, number, params = message.get("method"), message.get("id"), message.get("params")
    if method == "initialize":
        plugin = {"author": "test", "name": "tools", "version": "1"}
        send({"id": number, "result": {"protocol_version": "1", "plugin": plugin}})
    elif method == "list_agent_runners" and "RUNNERS" in os.environ:
        send({"id": number, "result": {"runners": [RUNNER]}})
    elif method == "list_tools" and mode == "silent":
        pass
    elif method == "list_tools" and mode == "late":
        while not os.path.exists("go"):
            threading.Event().wait(0.01)
        send({"id": number, "result": {"tools": TOOLS}})
    elif method == "list_tools" and mode == "refuses":
        send({"id": number, "error": {"code": -32603, "message": "the shelf is locked"}})
    elif method == "list_tools" and mode != "knows_none":
        send({"id": number, "result": {"tools": json.loads(os.environ.get("TOOLS", json.dumps(TOOLS)))}})
    elif method == "call_tool":
        calls[number] = threading.Event()
        threading.Thread(target=call, args=(number, params), daemon=True).start()
    elif method == "request.cancel":
        given_up.append(params["request_id"])
        calls[params["request_id"]].set()
    elif method == "shutdown":
        send({"id": number, "result": {}})
    elif number is not None:
        send({"id": number, "error": {"code": -32601, "message": "unknown"}})


for line in sys.stdin:
    handle(json.loads(line))
