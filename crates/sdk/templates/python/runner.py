#!/usr/bin/env python3
"""my-runner: a Greenroom runner in one file. stdout carries the wire alone; log to stderr."""
import json
import sys
import threading

AUTHOR, NAME = "local", "my-runner"
MANIFEST = {
    "id": f"plugin:{AUTHOR}/{NAME}/default",
    "name": "default",
    "label": NAME,
    "capabilities": {"streaming": True, "interrupt": True},
}
writing, cancelled = threading.Lock(), {}


def say(**message):
    with writing:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def answer(ctx, send, stop):
    """The runner's own work: send results; look at `stop` when it takes long."""
    text = "You said: " + (ctx["input"].get("text") or "")
    for word in text.replace(" ", " \n").split("\n"):
        if stop.is_set():
            return send("run.failed", {"code": "cancelled", "message": "the run was cancelled"})
        send("message.delta", {"chunk": {"role": "assistant", "content": word}})
    send("message.completed", {"message": {"role": "assistant", "content": text}})
    send("run.completed", {"finish_reason": "stop"})


def run(request_id, ctx, stop):
    def send(kind, data):
        say(method="run.result", params={"run_id": ctx["run_id"], "type": kind, "data": data})
    try:
        answer(ctx, send, stop)
    except Exception as error:
        send("run.failed", {"code": "runner.error", "message": str(error)})
    cancelled.pop(ctx["run_id"], None)
    say(id=request_id, result={})


for line in sys.stdin:
    message = json.loads(line)
    method, request_id, params = message.get("method"), message.get("id"), message.get("params", {})
    if method == "run_agent":
        stop = cancelled[params["context"]["run_id"]] = threading.Event()
        threading.Thread(target=run, args=(request_id, params["context"], stop), daemon=True).start()
    elif method == "run.cancel" and params["run_id"] in cancelled:
        cancelled[params["run_id"]].set()
    elif request_id is not None:
        known = {"initialize": {"protocol_version": "1", "plugin": {"author": AUTHOR, "name": NAME, "version": "0.1.0"}}, "list_agent_runners": {"runners": [MANIFEST]}, "shutdown": {}}
        say(id=request_id, **({"result": known[method]} if method in known else {"error": {"code": -32601, "message": f"there is no method `{method}`"}}))
    if method == "shutdown":
        break
