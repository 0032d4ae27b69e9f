"""A plugin without runners that offers tools, good ones and bad ones."""
import json, os, sys, threading
from wire import note, send

NUMBERS = {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"],
           "additionalProperties": False}


def tool(name, description="Misbehaves", schema={"type": "object"}, risk="read", **more):
    return {"name": name, "description": description, "input_schema": schema, "risk": risk, **more}


TOOLS = [
    tool("add", "Adds two numbers", NUMBERS),
    tool("text"), tool("fail"), tool("refuse"), tool("crash"), tool("garbage"), tool("large"),
    tool("hang", timeout_s=1),
    tool("wait", risk="write"),
    tool("remote", schema={"type": "object", "properties": {"x": {"$ref": "https://example.com/schema.json"}}}),
    tool("odd name"),
]


def call(request, name, given):
    if name == "add":
        send(id=request, result={"result": {"sum": given["a"] + given["b"]}})
    elif name == "text":
        send(id=request, result={"content": "only words"})
    elif name == "fail":
        send(id=request, result={"result": None, "error": {"code": "NO_INK", "message": "the pen is empty", "pen": 7}})
    elif name == "refuse":
        send(id=request, error={"code": -32000, "message": "not today"})
    elif name == "crash":
        os._exit(9)
    elif name == "garbage":
        send(id=request, result=["this is not an answer"])
    elif name == "large":
        send(id=request, result={"result": {"text": "y" * 400_000}})
    elif name == "wait":
        open("waits", "a").close()


note("start")
for line in sys.stdin:
    message = json.loads(line)
    request, method, params = message.get("id"), message.get("method"), message.get("params")
    if method == "initialize":
        send(id=request, result={"protocol_version": "1", "plugin": {"author": "test", "name": "smith", "version": "1"}})
    elif method == "list_agent_runners":
        send(id=request, result={"runners": []})
    elif method == "list_tools":
        send(id=request, result={"tools": TOOLS})
    elif method == "call_tool":
        note(f"call {request} {params['tool_name']} {params['tool_call_id']} {params.get('run_id')}")
        threading.Thread(target=call, args=(request, params["tool_name"], params["parameters"]), daemon=True).start()
    elif method == "request.cancel":
        note(f"cancel {params['request_id']}")
    elif request is not None:
        send(id=request, result={})
