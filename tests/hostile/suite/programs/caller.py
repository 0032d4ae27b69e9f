"""A runner that calls one tool, as the event's text says: `{"tool": NAME, "parameters": {…}}`, and repeats its answer."""

import itertools
import json
import sys
import threading

MANIFEST = {"id": "plugin:suite/caller/main", "name": "main", "label": {"en_US": "caller"},
            "permissions": {"tools": ["detail", "call"]}}
ANSWERS = {
    "initialize": {"protocol_version": "1", "plugin": {"author": "suite", "name": "caller", "version": "1"}},
    "list_agent_runners": {"runners": [MANIFEST]},
}
numbers, runs, lock = itertools.count(1), {}, threading.Lock()


def say(**message):
    with lock:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


for line in sys.stdin:
    message = json.loads(line)
    number, method, params = message.get("id"), message.get("method"), message.get("params")
    if method == "run_agent":
        wanted = json.loads(params["context"]["input"]["text"])
        call = next(numbers)
        run_id = params["context"]["run_id"]
        runs[call] = (number, run_id)
        say(id=call, method="tools.call", params={
            "run_id": run_id, "tool_name": wanted["tool"], "parameters": wanted["parameters"], "tool_call_id": f"c{run_id}"})
    elif method:
        if number is not None:
            say(id=number, result=ANSWERS.get(method, {}))
    elif number in runs:
        request, run_id = runs.pop(number)
        answer = {key: message[key] for key in ("result", "error") if key in message}
        content = {"role": "assistant", "content": json.dumps(answer)}
        say(method="run.result", params={"run_id": run_id, "type": "run.completed", "data": {"message": content}})
        say(id=request, result={})
