"""The runner of the recorded hosts: plays the steps in `data.steps` of its event, and offers the tools `note` and `hold`.

It is copied into every recorded folder and never changed there. Standard library only.
"""
import itertools
import json
import os
import sys
import threading
import time

lock = threading.RLock()
numbers, answers = itertools.count(1), {}

PERMISSIONS = {
    "storage": ["plugin", "workspace", "binding"],
    "history": ["page", "search"],
    "events": ["get", "page"],
    "artifacts": ["metadata", "read", "create"],
    "models": ["invoke", "stream"],
    "tools": ["detail", "call"],
    "platform_api": ["message.send"],
}
NOTE = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}
TOOLS = [
    {"name": "note", "description": "Notes a text", "input_schema": NOTE, "risk": "write"},
    {"name": "hold", "description": "Never answers", "input_schema": NOTE, "risk": "write"},
]


def write(lines):
    data = "".join(json.dumps({"jsonrpc": "2.0", **line}) + "\n" for line in lines).encode()
    with lock:
        while data:
            data = data[os.write(1, data):]


def call(method, params):
    """Calls the host and waits for its answer."""
    number, done, kept = next(numbers), threading.Event(), []

    def keep(answer):
        kept.append(answer)
        done.set()

    answers[number] = keep
    write([{"id": number, "method": method, "params": params}])
    done.wait()
    return kept[0]


def play(request, context):
    run = context["run_id"]
    answer = {}

    def result(kind, data, **more):
        return {"method": "run.result", "params": {"run_id": run, "type": kind, "data": data, **more}}

    def delta(text):
        return result("message.delta", {"chunk": {"role": "assistant", "content": text}})

    def message(text):
        return result("message.completed", {"message": {"role": "assistant", "content": text}})

    for word, *arguments in context["event"]["data"].get("steps", []):
        if word == "say":
            # In one write, so that the host stores them in one chunk.
            write([delta(text) for text in arguments])
        elif word == "message":
            write([message(arguments[0])])
        elif word == "result":
            write([result(*arguments[:2], **(arguments[2] if len(arguments) > 2 else {}))])
        elif word == "call":
            answer = call(arguments[0], {"run_id": run, **arguments[1]})
        elif word == "stray_call":
            answer = call(arguments[0], {"run_id": "run_of_nobody", **arguments[1]})
        elif word == "tell_answer":
            write([message(json.dumps(answer, ensure_ascii=False, sort_keys=True))])
        elif word == "end":
            usage = {"usage": {"input_tokens": 3, "output_tokens": 5}}
            write([result("run.completed", {"finish_reason": "stop"}, **usage)])
        elif word == "fail":
            write([result("run.failed", {"code": arguments[0], "message": arguments[1]})])
        elif word == "crash":
            os._exit(3)
        elif word == "hang":
            threading.Event().wait()
        elif word == "pull":
            # Until something is there to be pulled.
            while not answer.get("result", {}).get("items"):
                answer = call("steering.pull", {"run_id": run})
                time.sleep(0.01)
        elif word == "hang_at_first":
            if context["metadata"]["attempt"] == 1:
                threading.Event().wait()
    write([{"id": request, "result": {}}])


def serve():
    name = os.environ.get("NAME", "player")
    manifest = {
        "id": f"plugin:recorded/{name}/main",
        "name": "main",
        "label": {"en_US": name},
        "permissions": PERMISSIONS,
        "capabilities": {"steering": True, "streaming": True},
    }
    for line in sys.stdin:
        told = json.loads(line)
        request, method, params = told.get("id"), told.get("method"), told.get("params")
        if method == "initialize":
            plugin = {"author": "recorded", "name": name, "version": "1"}
            write([{"id": request, "result": {"protocol_version": "1", "plugin": plugin}}])
        elif method == "list_agent_runners":
            write([{"id": request, "result": {"runners": [manifest]}}])
        elif method == "list_tools":
            write([{"id": request, "result": {"tools": TOOLS}}])
        elif method == "call_tool":
            if params["tool_name"] == "note":
                write([{"id": request, "result": {"result": {"noted": params["parameters"]["text"]}}}])
        elif method == "run_agent":
            threading.Thread(target=play, args=(request, params["context"]), daemon=True).start()
        elif method is None:
            answers.pop(request)({key: told[key] for key in ("result", "error") if key in told})
        elif request is not None:
            write([{"id": request, "result": {}}])


serve()
