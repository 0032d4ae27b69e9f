"""A runner that plays what its config or the event's text says: a JSON list of steps, each a word and its arguments."""
import json, os, subprocess, threading, time, urllib.request
from wire import ask, cancelled, lock, send, serve, write


def gate(name):
    while not os.path.exists(name):
        time.sleep(0.005)


def keep(value, name):
    with open(name + ".part", "w") as part:
        json.dump(value, part)
    os.rename(name + ".part", name)


def fetch(context, path, body):
    """Status and body of a request to a gateway of the run, or why there is none."""
    metadata = context["runtime"]["metadata"]
    headers = {"authorization": "Bearer " + metadata["run_token"], "content-type": "application/json"}
    url = metadata["host_url"] + path.replace("RUN", context["run_id"])
    try:
        with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)) as answer:
            return [answer.status, json.load(answer)]
    except OSError as error:
        return [0, str(error)]


def long_line(run, megabytes):
    with lock:
        write(b'{"method":"run.result","params":{"run_id":"%s","x":"' % run.encode())
        for _ in range(megabytes):
            write(b"x" * 1_000_000)
        write(b'"}}\n')


def flood(run, megabytes):
    chunk = {"role": "assistant", "content": "x" * 10_000}
    line = {"method": "run.result", "params": {"run_id": run, "type": "message.delta", "data": {"chunk": chunk}}}
    block = (json.dumps(line) + "\n").encode() * 100
    for _ in range(megabytes):
        write(block)


def play(request, run, context):
    def result(kind, data, more={}):
        send(method="run.result", params={"run_id": run, "type": kind, "data": data, **more})

    calls = {}

    def start_call(method, params, name):
        done = threading.Event()

        def answered(answer):
            keep(answer, name)
            done.set()

        calls[name] = ask(method, {"run_id": run, **params}, answered)
        return done

    words = {
        "call": lambda method, params, name: start_call(method, params, name).wait(),
        "start_call": start_call,
        "give_up": lambda name: send(method="request.cancel", params={"request_id": calls[name]}),
        "say": lambda text: result("message.delta", {"chunk": {"role": "assistant", "content": text}}),
        "message": lambda text: result("message.completed", {"message": {"role": "assistant", "content": text}}),
        "tell": lambda field: words["message"](json.dumps(context[field])),
        "keep": lambda field, name: keep(context[field], name),
        "fetch": lambda path, body, name: keep(fetch(context, path, body), name),
        "result": result,
        "end": lambda: result("run.completed", {"finish_reason": "stop"}),
        "line": lambda text: write(text.replace("RUN", run).encode("latin-1") + b"\n"),
        "mark": lambda name: open(name, "a").close(),
        "gate": gate,
        "cancelled": lambda: cancelled[run].wait(),
        "hang": lambda: threading.Event().wait(),
        "exit": os._exit,
        "close": os.close,
        "stderr": lambda count: [os.write(2, b"noise\n" * 1000) for _ in range(count)],
        "fork_bomb": lambda: [os.fork() for _ in iter(int, 1)],
        "children": lambda count: [subprocess.Popen(["sleep", "1000"], start_new_session=True) for _ in range(count)],
        "flood": lambda megabytes: flood(run, megabytes),
        "long_line": lambda megabytes: long_line(run, megabytes),
        "answer": lambda: send(id=request, result={}),
        "error": lambda code, text: send(id=request, error={"code": code, "message": text}),
    }
    steps = json.loads(context["config"].get("steps") or context["input"]["text"])
    for word, *arguments in steps:
        words[word](*arguments)
    if not any(step[0] in ("answer", "error") for step in steps):
        send(id=request, result={})


serve(os.environ.get("NAME", "puppet"), play)
