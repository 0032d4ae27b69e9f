"""The native wire for test runners: standard library only, one thread per run, a log of what the host said."""
import itertools, json, os, sys, threading

lock, cancelled = threading.RLock(), {}
numbers, answers, items = itertools.count(1), {}, {}


def write(data):
    with lock:
        while data:
            data = data[os.write(1, data):]


def send(**message):
    write((json.dumps({"jsonrpc": "2.0", **message}) + "\n").encode())


def ask(method, params, answered):
    """Calls the host; `answered` gets what it says."""
    number = next(numbers)
    answers[number] = answered
    send(id=number, method=method, params=params)
    return number


def note(text):
    with open("wire.log", "a") as log:
        log.write(text + "\n")


def heard():
    """What the host says, line by line. A runner that has closed its own input hears nothing more and lives on."""
    try:
        yield from sys.stdin
    except OSError:
        threading.Event().wait()


def serve(name, play):
    """Calls `play(request, run_id, context)` for every run, each in a thread of its own."""
    note("start")
    plugin = {"author": "test", "name": name, "version": "1"}
    manifest = {"id": f"plugin:test/{name}/main", "name": "main", "label": {"en_US": name}, "permissions": {
        "storage": ["plugin"], "platform_api": ["message.send", "message.edit", "message.react", "message.delete"],
        "history": ["page"], "artifacts": ["metadata", "read", "create"], "models": ["invoke", "stream", "rerank", "embed"],
        "tools": ["detail", "call"]}, "capabilities": {"steering": True}}
    for line in heard():
        message = json.loads(line)
        request, method, params = message.get("id"), message.get("method"), message.get("params")
        if method == "initialize":
            send(id=request, result={"protocol_version": "1", "plugin": plugin})
        elif method == "list_agent_runners":
            send(id=request, result={"runners": [manifest]})
        elif method == "run_agent":
            run = params["context"]["run_id"]
            note("run " + run)
            cancelled[run] = threading.Event()
            threading.Thread(target=play, args=(request, run, params["context"]), daemon=True).start()
        elif method == "run.cancel":
            note("cancel " + params["run_id"])
            cancelled[params["run_id"]].set()
        elif method == "stream.item":
            items.setdefault(params["request_id"], []).append(params["item"])
            note("item " + params["item"].get("type", ""))
        elif method is None:
            answer = {key: message[key] for key in ("result", "error") if key in message}
            # What came before the answer; what comes after it is lost.
            if request in items:
                answer["items"] = items.pop(request)
            answers.pop(request, lambda answer: None)(answer)
        elif request is not None:
            send(id=request, result={})
