"""A runner that plays what the event's text says: a JSON list of steps, each a word and its arguments."""
import json, os, subprocess, sys, threading, time

lock, cancelled = threading.Lock(), {}


def write(data):
    with lock:
        while data:
            data = data[os.write(1, data):]


def send(**message):
    write((json.dumps({"jsonrpc": "2.0", **message}) + "\n").encode())


def gate(name, since=None):
    while not os.path.exists(name):
        time.sleep(0.005)


def long_line(run, megabytes):
    write(b'{"method":"run.result","params":{"run_id":"%s","x":"' % run.encode())
    for _ in range(megabytes):
        write(b"x" * 1_000_000)
    write(b'"}}\n')


def flood(run, megabytes):
    line = {"method": "run.result", "params": {"run_id": run, "type": "message.delta", "data": {"chunk": {"content": "x" * 1000}}}}
    block = (json.dumps(line) + "\n").encode() * 100
    for _ in range(megabytes * 10):
        write(block)


def fork_bomb():
    while True:
        os.fork()


def play(request, run, steps):
    result = lambda kind, data, more={}: send(method="run.result", params={"run_id": run, "type": kind, "data": data, **more})
    words = {
        "say": lambda text: result("message.delta", {"chunk": {"role": "assistant", "content": text}}),
        "message": lambda text: result("message.completed", {"message": {"role": "assistant", "content": text}}),
        "result": result, "end": lambda: result("run.completed", {"finish_reason": "stop"}),
        "line": lambda text: write(text.replace("RUN", run).encode("latin-1") + b"\n"),
        "mark": lambda name: open(name, "a").close(), "gate": gate, "cancelled": lambda: cancelled[run].wait(),
        "hang": lambda: threading.Event().wait(), "exit": os._exit, "close": os.close,
        "stderr": lambda count: os.write(2, b"noise\n" * count), "fork_bomb": fork_bomb,
        "children": lambda count: [subprocess.Popen(["sleep", "1000"], start_new_session=True) for _ in range(count)],
        "flood": lambda megabytes: flood(run, megabytes), "long_line": lambda megabytes: long_line(run, megabytes),
        "answer": lambda: send(id=request, result={}), "error": lambda code, text: send(id=request, error={"code": code, "message": text}),
    }
    for word, *arguments in steps:
        words[word](*arguments)
    if not any(step[0] in ("answer", "error") for step in steps):
        send(id=request, result={})


def run_agent(request, context):
    note("run " + context["run_id"])
    steps = json.loads(context["config"]["steps"] if "steps" in context["config"] else context["input"]["text"])
    cancelled[context["run_id"]] = threading.Event()
    threading.Thread(target=play, args=(request, context["run_id"], steps), daemon=True).start()


def note(text):
    with open("wire.log", "a") as log:
        log.write(text + "\n")


def main():
    note("start")
    name = os.environ.get("NAME", "puppet")
    manifest = {"id": f"plugin:test/{name}/main", "name": "main", "label": {"en_US": name}, "permissions": {"storage": ["plugin"]}}
    for line in sys.stdin:
        message = json.loads(line)
        method, params = message.get("method"), message.get("params")
        if method == "run_agent":
            run_agent(message["id"], params["context"])
        elif method == "run.cancel":
            note("cancel " + params["run_id"])
            cancelled[params["run_id"]].set()
        elif method == "list_agent_runners":
            send(id=message["id"], result={"runners": [manifest]})
        elif "id" in message:
            send(id=message["id"], result={"protocol_version": "1", "plugin": {"author": "test", "name": name, "version": "1"}})


main()
