"""A plugin without runners whose tools take notes: they wait for each other, for a gate, or for nobody."""
import json, os, sys, threading, time
from wire import note, send

ANYTHING = {"type": "object"}
NAMED = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"], "additionalProperties": False}
PAIR = {"type": "object", "properties": {"name": {"type": "string"}, "other": {"type": "string"}}, "required": ["name", "other"]}
# One of everything that a careless translation of schemas loses.
TYPED = {
    "type": "object",
    "properties": {
        "count": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3},
        "ratio": {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5},
        "color": {"type": "string", "enum": ["red", "green"]},
        "note": {"type": ["string", "null"], "maxLength": 20, "pattern": "^[a-z ]*$"},
        "target": {"oneOf": [{"type": "string", "format": "email"}, {"type": "object", "properties": {
            "id": {"const": 7}}, "required": ["id"], "additionalProperties": False}]},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": True},
    },
    "required": ["count"],
    "additionalProperties": False,
}
WORDS = ["invoice", "weather", "photo", "ticket", "flight", "recipe", "song", "contract", "parcel", "garden"]
lock = threading.Lock()


def tool(name, description, schema=ANYTHING, risk="read", **more):
    return {"name": name, "description": description, "input_schema": schema, "risk": risk, **more}


TOOLS = [
    tool("meet", "Waits for somebody else to come", PAIR),
    tool("write", "Writes a line", NAMED, risk="write"),
    tool("erase", "Erases a line for good", NAMED, risk="destructive"),
    tool("gate", "Waits at the gate", NAMED),
    tool("hold", "Waits at the gate to write", NAMED, risk="write"),
    tool("typed", "Takes all kinds of values", TYPED),
    tool("fail", "Always fails", ANYTHING),
    tool("book", "Returns a whole book", ANYTHING),
    tool("two.words", "Says two", ANYTHING),
    tool("two_words", "Says zwei", ANYTHING),
    # Only where a test wants many of them.
    *(tool(f"{WORDS[n % len(WORDS)]}_{n:03}", f"Handles one {WORDS[n % len(WORDS)]} of shelf {n}", NAMED)
      for n in range(int(os.environ.get("MANY", "0")))),
]


def wait_for(path):
    until = time.monotonic() + 20
    while not os.path.exists(path):
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True


def call(request, name, given):
    done = lambda result: send(id=request, result={"result": result})
    if name == "meet":
        open("here-" + given["name"], "a").close()
        done({"met": wait_for("here-" + given["other"])})
    elif name in ("write", "erase"):
        with lock:
            note(f"begin {given['name']}")
        # Long enough for another call to begin, if there were one.
        time.sleep(0.05)
        with lock:
            note(f"end {given['name']}")
        done({"written": given["name"]})
    elif name in ("gate", "hold"):
        open("at-" + given["name"], "a").close()
        done({"passed": wait_for("open-" + given["name"])})
    elif name == "book":
        lines = "".join(f"line {n:05} of the book, {n * n:>16}; " for n in range(4000))
        done({"text": lines})
    elif name == "fail":
        send(id=request, result={"result": None, "error": {"code": "BROKEN", "message": "it is broken"}})
    else:
        done({"tool": name, "given": given})


note("start")
for line in sys.stdin:
    message = json.loads(line)
    request, method, params = message.get("id"), message.get("method"), message.get("params")
    if method == "initialize":
        send(id=request, result={"protocol_version": "1", "plugin": {"author": "test", "name": "yard", "version": "1"}})
    elif method == "list_agent_runners":
        send(id=request, result={"runners": []})
    elif method == "list_tools":
        time.sleep(float(os.environ.get("LATE_S", "0")))
        send(id=request, result={"tools": TOOLS})
    elif method == "call_tool":
        threading.Thread(target=call, args=(request, params["tool_name"], params["parameters"]), daemon=True).start()
    elif method == "request.cancel":
        note(f"cancel {params['request_id']}")
    elif request is not None:
        send(id=request, result={})
