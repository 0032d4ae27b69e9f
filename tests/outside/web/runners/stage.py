"""A runner that plays the steps in its config or message (JSON); its manifest contains script injections."""
import json, os, sys, threading, time

SCRIPT = '<img src=x onerror="document.title=\'owned\'">'
LABEL = {"en_US": "Stage " + SCRIPT, "zh_Hans": "舞台 " + SCRIPT}
FORM = [
    {"name": "greeting", "label": {"en_US": "Greeting", "zh_Hans": "问候"}, "type": "string", "required": True, "default": "hi"},
    {"name": "prompt", "label": {"en_US": "Prompt " + SCRIPT}, "type": "text", "description": {"en_US": SCRIPT}},
    {"name": "rounds", "label": {"en_US": "Rounds"}, "type": "integer", "default": 4},
    {"name": "loud", "label": {"en_US": "Loud"}, "type": "boolean", "default": False},
    {"name": "mood", "label": {"en_US": "Mood"}, "type": "select", "default": "calm",
     "options": [{"name": "calm", "label": {"en_US": "Calm"}}, {"name": "wild", "label": {"en_US": "Wild " + SCRIPT}}]},
    {"name": "tags", "label": {"en_US": "Tags"}, "type": "array[string]"},
]
MANIFEST = {
    "id": "plugin:test/stage/main", "name": "main", "label": LABEL, "description": {"en_US": SCRIPT},
    "capabilities": {"streaming": True, "steering": True}, "config_schema": FORM,
    "permissions": {"tools": ["detail", "call"], "history": ["page"], "artifacts": ["metadata", "read", "create"],
                    "models": ["invoke"], "storage": ["plugin"]},
}

lock, numbers, waiting, cancelled = threading.Lock(), iter(range(1, 1 << 40)), {}, {}


def send(*messages):
    text = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)
    with lock:
        data = text.encode()
        while data:
            data = data[os.write(1, data):]


def ask(method, params):
    number, done, answer = next(numbers), threading.Event(), {}
    waiting[number] = lambda message: (answer.update(message), done.set())
    send({"id": number, "method": method, "params": params})
    done.wait()
    return answer.get("result", answer.get("error"))


def gate(name, run):
    while not os.path.exists(name) and not cancelled[run].is_set():
        time.sleep(0.005)


def play(request, run, context):
    def result(kind, data):
        return {"method": "run.result", "params": {"run_id": run, "type": kind, "data": data}}

    def say(text):
        return result("message.delta", {"chunk": {"role": "assistant", "content": text}})

    def message(text):
        return result("message.completed", {"message": {"role": "assistant", "content": text}})

    def tool(call):
        send(result("tool.call.started", call))
        ask("tools.call", {"run_id": run, **call})
        send(result("tool.call.completed", {**call, "result": None}))

    def lines(count):
        """Many messages of different heights: mostly text, sometimes a list, code or a table."""
        others = {3: "- one\n- two with `code`\n- [three](https://example.com)", 6: "```python\nfor each in range(10):\n    print(each)\n```",
                  9: "|name|value|\n|-|-|\n|one|1|\n|two|2|"}
        bodies = [others.get(number % 10, "A line of text. " * (1 + number % 9)) for number in range(count)]
        send(*[message(f"**Item {number}**\n\n{body}") for number, body in enumerate(bodies)])

    def flood(count):
        """Many results: half of them tool calls, the others deltas."""
        for number in range(count // 4):
            call = {"tool_name": "lookup", "tool_call_id": f"c{number}", "parameters": {"number": number}}
            send(result("tool.call.started", call), result("tool.call.completed", {**call, "result": {"ok": number}}),
                 say(f"{number} "), say("and "))

    words = {
        "say": lambda text: send(say(text)),
        "message": lambda text: send(message(text)),
        "result": lambda kind, data: send(result(kind, data)),
        "tool": tool,
        "call": lambda method, params: ask(method, {"run_id": run, **params}),
        "pull": lambda: send(message("Taken in: " + json.dumps(ask("steering.pull", {"run_id": run})))),
        "gate": lambda name: gate(name, run),
        "lines": lines,
        "flood": flood,
        "fail": lambda code, text: send(result("run.failed", {"code": code, "message": text})),
        "end": lambda: send(result("run.completed", {"finish_reason": "stop"})),
    }
    try:
        steps = json.loads(context["config"].get("steps") or context["input"]["text"])
    except ValueError:
        steps = [["fail", "runner.no_steps", "this is no list of steps"]]
    if context["event"]["event_type"] == "interaction.submitted":
        steps = [["message", "Got " + json.dumps(context["input"]["interaction"], sort_keys=True)], ["end"]]
    for word, *arguments in steps:
        words[word](*arguments)
    send({"id": request, "result": {}})


for line in sys.stdin:
    message = json.loads(line)
    request, method, params = message.get("id"), message.get("method"), message.get("params")
    if method == "initialize":
        plugin = {"author": "test", "name": "stage", "version": "1.0.0"}
        send({"id": request, "result": {"protocol_version": "1", "plugin": plugin}})
    elif method == "list_agent_runners":
        send({"id": request, "result": {"runners": [MANIFEST]}})
    elif method == "run_agent":
        run = params["context"]["run_id"]
        cancelled[run] = threading.Event()
        threading.Thread(target=play, args=(request, run, params["context"]), daemon=True).start()
    elif method == "run.cancel":
        cancelled[params["run_id"]].set()
    elif method is None:
        waiting.pop(request, lambda answer: None)(message)
    elif request is not None:
        send({"id": request, "result": {}})
