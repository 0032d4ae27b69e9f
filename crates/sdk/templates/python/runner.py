#!/usr/bin/env python3
"""my-runner: a Greenroom runner in one file. stdout carries the wire alone; log to stderr."""
import json, re, sys, threading

PLUGIN = {"author": "local", "name": "my-runner", "version": "0.1.0"}
RUNNER = {"id": "plugin:local/my-runner/default", "name": "default", "label": "my-runner",
          "capabilities": {"streaming": True, "interrupt": True}}
ANSWERS = {"initialize": {"protocol_version": "1", "plugin": PLUGIN},
           "list_agent_runners": {"runners": [RUNNER]}, "shutdown": {}}
writing, cancelled = threading.Lock(), {}


def say(**message):
    with writing:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def answer(ctx, send, stop):
    """The runner's own work: send results; look at `stop` when it takes long."""
    text = "You said: " + (ctx["input"].get("text") or "")
    for word in re.findall(r"\s*\S+\s*", text):
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


for line in sys.stdin.buffer:
    try:
        message = json.loads(line)
    except ValueError as error:
        say(id=None, error={"code": -32700, "message": str(error)})
        continue
    method, request_id, params = message.get("method"), message.get("id"), message.get("params", {})
    if method == "run_agent":
        stop = cancelled[params["context"]["run_id"]] = threading.Event()
        threading.Thread(target=run, args=(request_id, params["context"], stop), daemon=True).start()
    elif method == "run.cancel" and params["run_id"] in cancelled:
        cancelled[params["run_id"]].set()
    elif request_id is not None and method in ANSWERS:
        say(id=request_id, result=ANSWERS[method])
    elif request_id is not None:
        say(id=request_id, error={"code": -32601, "message": f"there is no method `{method}`"})
    if method == "shutdown":
        break
