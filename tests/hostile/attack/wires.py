"""The wires of the five kinds of process, standard library only. Each passes a text in and a text out."""

import itertools
import json
import os
import sys
import threading

lock = threading.Lock()


def say(message):
    with lock:
        data = (json.dumps(message) + "\n").encode()
        while data:
            data = data[os.write(1, data):]


def rpc(**message):
    say({"jsonrpc": "2.0", **message})


def work(function, *args):
    threading.Thread(target=function, args=args, daemon=True).start()


def serve(kind, answer):
    wire = kind.split("-")[0]
    {"native": native, "plugin": native, "langbot": langbot, "mcp": mcp, "module": module}[wire](kind, answer)


def native(kind, answer):
    """A runner `plugin:hostile/KIND/main` that also offers the tool `attack`."""
    manifest = {"id": f"plugin:hostile/{kind}/main", "name": "main", "label": {"en_US": kind}}
    tool = {"name": "attack", "description": "attacks", "risk": "read", "timeout_s": 100, "input_schema": {
        "type": "object", "properties": {"request": {"type": "string"}}, "required": ["request"]}}

    def run(request, context):
        message = {"role": "assistant", "content": answer(context["input"]["text"])}
        rpc(method="run.result", params={"run_id": context["run_id"], "type": "run.completed", "data": {"message": message}})
        rpc(id=request, result={})

    def call(request, params):
        rpc(id=request, result={"result": {"text": answer(params["parameters"]["request"])}})

    for line in sys.stdin:
        message = json.loads(line)
        request, method, params = message.get("id"), message.get("method"), message.get("params")
        if method == "initialize":
            plugin = {"author": "hostile", "name": kind, "version": "1"}
            rpc(id=request, result={"protocol_version": "1", "plugin": plugin})
        elif method == "list_agent_runners":
            rpc(id=request, result={"runners": [manifest]})
        elif method == "list_tools":
            rpc(id=request, result={"tools": [tool]})
        elif method == "run_agent":
            work(run, request, params["context"])
        elif method == "call_tool":
            work(call, request, params)
        elif request is not None and method:
            rpc(id=request, result={})


def mcp(_kind, answer):
    """An MCP server with the tool `attack`."""
    tool = {"name": "attack", "description": "attacks", "annotations": {"readOnlyHint": True}, "inputSchema": {
        "type": "object", "properties": {"request": {"type": "string"}}, "required": ["request"]}}

    def call(request, params):
        text = answer(params["arguments"]["request"])
        rpc(id=request, result={"content": [{"type": "text", "text": text}]})

    for line in sys.stdin:
        message = json.loads(line)
        request, method, params = message.get("id"), message.get("method"), message.get("params") or {}
        if method == "initialize":
            rpc(id=request, result={"protocolVersion": params.get("protocolVersion", "2025-06-18"),
                                    "capabilities": {"tools": {}}, "serverInfo": {"name": "hostile", "version": "1"}})
        elif method == "tools/list":
            rpc(id=request, result={"tools": [tool]})
        elif method == "tools/call":
            work(call, request, params)
        elif request is not None and method:
            rpc(id=request, error={"code": -32601, "message": f"there is no method {method}"})


def module(_kind, answer):
    """A method of the project CLI: the request on stdin, the answer on stdout, then it ends."""
    text = json.load(sys.stdin)["request"]
    print(json.dumps({"ok": True, "data": {"text": answer(text)}}), flush=True)
    os._exit(0)


CHUNK_BYTES = 16 * 1024


def langbot(kind, answer):
    """A plugin of LangBot's older dialect, with the runner `plugin:hostile/KIND/main`."""
    numbers = itertools.count(1)
    metadata = {"author": "hostile", "name": kind, "version": "0.1.0"}
    spec = {"protocol_version": "1", "capabilities": {}, "permissions": {}, "config": []}
    runner = {"kind": "AgentRunner", "metadata": {"name": "main", "label": {"en_US": kind}}, "spec": spec}
    container = {
        "manifest": {"owner": "builtin", "manifest": {"kind": "Plugin", "metadata": metadata}}, "plugin_config": {},
        "status": "initialized", "components": [{"manifest": {"manifest": runner}, "component_config": {}}]}

    def frame(message):
        text = json.dumps(message)
        if len(text) <= CHUNK_BYTES:
            return say(message)
        say({"type": "chunk_start", "total_size": len(text)})
        for offset in range(0, len(text), CHUNK_BYTES):
            say({"type": "chunk_data", "data": text[offset:offset + CHUNK_BYTES], "offset": offset})
        say({"type": "chunk_end"})

    def reply(request, data, status="continue"):
        frame({"seq_id": request, "code": 0, "message": "success", "data": data, "chunk_status": status})

    def run(request, context):
        run_id = context["run_id"]
        message = {"role": "assistant", "content": answer(context["input"]["text"])}
        reply(request, {"run_id": run_id, "type": "message.completed", "data": {"message": message}})
        reply(request, {"run_id": run_id, "type": "run.completed", "data": {}})
        reply(request, {}, "end")

    secret = os.environ["LANGBOT_PLUGIN_REGISTRATION_CAPABILITY"]
    frame({"seq_id": next(numbers), "action": "register_plugin", "data": {
        "plugin_container": container, "prod_mode": True, "plugin_debug_key": "", "registration_capability": secret}})
    for message in frames():
        request, action = message.get("seq_id"), message.get("action")
        if action == "get_plugin_container":
            reply(request, container)
        elif action == "run_agent":
            work(run, request, message["data"]["context"])
        elif action:
            reply(request, {})


def frames():
    """The messages of the host, put together from their pieces."""
    pieces = []
    for line in sys.stdin:
        message = json.loads(line)
        match message.get("type"):
            case "chunk_start":
                pieces = []
            case "chunk_data":
                pieces.append(message["data"])
            case "chunk_end":
                yield json.loads("".join(pieces))
            case _:
                yield message
