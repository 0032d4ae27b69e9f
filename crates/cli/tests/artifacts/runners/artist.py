"""A runner that carries out the steps in the event's text, a JSON list, and answers with what came of each."""
import base64, json, os, sys, threading

lock, arrived, answers, items = threading.RLock(), threading.Condition(), {}, {}
numbers = iter(range(1000, 10**9))


def send(**message):
    data = (json.dumps({"jsonrpc": "2.0", **message}) + "\n").encode()
    with lock:
        while data:
            data = data[os.write(1, data):]


def call(run, method, params):
    number = next(numbers)
    send(id=number, method=method, params={"run_id": run, **params})
    with arrived:
        arrived.wait_for(lambda: number in answers)
        answer = answers.pop(number)
    if "error" in answer:
        return {"error": answer["error"]["data"]}
    return {"ok": answer["result"], **({"items": items.pop(number)} if number in items else {})}


def filled(value, seen):
    """`$0.artifact_id` is that field of the first answer; `*3` after it or any text repeats it."""
    if isinstance(value, dict):
        return {key: filled(inner, seen) for key, inner in value.items()}
    if isinstance(value, str) and value.startswith("$"):
        number, field = value[1:].split(".")
        return seen[int(number)]["ok"][field]
    if isinstance(value, list) and value[:1] == ["repeat"]:
        return value[1] * value[2]
    if isinstance(value, list) and value[:1] == ["base64"]:
        return base64.b64encode(filled(value[1], seen).encode()).decode()
    return value


def play(request, context):
    run, seen = context["run_id"], []
    for word, name, params in json.loads(context["input"]["text"]):
        if word == "call":
            seen.append(call(run, name, filled(params, seen)))
        elif word == "result":
            send(method="run.result", params={"run_id": run, "type": name, "data": filled(params, seen)})
        elif word == "context":
            seen.append({"ok": {key: context[key] for key in ("event", "input")}})
    message = {"role": "assistant", "content": json.dumps(seen)}
    send(method="run.result", params={"run_id": run, "type": "message.completed", "data": {"message": message}})
    send(method="run.result", params={"run_id": run, "type": "run.completed", "data": {"finish_reason": "stop"}})
    send(id=request, result={})


manifest = {"id": "plugin:test/artist/main", "name": "main", "label": {"en_US": "artist"},
            "permissions": {"artifacts": ["metadata", "read", "create"]}}
for line in sys.stdin:
    message = json.loads(line)
    request, method, params = message.get("id"), message.get("method"), message.get("params")
    if method == "initialize":
        send(id=request, result={"protocol_version": "1", "plugin": {"author": "test", "name": "artist", "version": "1"}})
    elif method == "list_agent_runners":
        send(id=request, result={"runners": [manifest]})
    elif method == "run_agent":
        threading.Thread(target=play, args=(request, params["context"]), daemon=True).start()
    elif method == "stream.item":
        items.setdefault(params["request_id"], []).append(params["item"])
    elif method is None:
        with arrived:
            answers[request] = message
            arrived.notify_all()
    elif request is not None:
        send(id=request, result={})
