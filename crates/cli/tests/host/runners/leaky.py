"""A runner that tells its secrets wherever it can, in every form, and keeps a list of what must not be found."""
import base64, json, os, sys, threading, urllib.parse
from wire import send, write

SECRET = os.environ["THE_SECRET"]
answers, asked = {}, threading.Condition()
numbers = iter(range(1000, 10**9))


def forms(value):
    """The value as texts; of base64 what does not depend on its neighbours."""
    raw = value.encode()
    found = {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], urllib.parse.quote(value, safe="")}
    for offset in range(3):
        padded = bytes(offset) + raw
        first, last = -(-offset * 8 // 6), len(padded) * 8 // 6
        found |= {encode(padded).decode()[first:last] for encode in (base64.b64encode, base64.urlsafe_b64encode)}
    return sorted(found)


def told(value):
    """Texts that tell the value."""
    around = [prefix + value for prefix in ("", "a", "ab")]
    return forms(value)[:1] + [value, json.dumps(value), urllib.parse.quote(value, safe="")] + [
        encode(text.encode()).decode() for text in around for encode in (base64.b64encode, base64.urlsafe_b64encode)]


def call(run, method, **params):
    number = next(numbers)
    send(id=number, method=method, params={"run_id": run, **params})
    with asked:
        asked.wait_for(lambda: number in answers, timeout=10)
        return answers.pop(number, None)


def say(result, value, name):
    """Deltas: whole, cut in two at every place, character by character, with something in between."""
    def delta(text, message):
        result("message.delta", {"chunk": {"role": "assistant", "content": text, "message_id": f"{name}-{message}"}})
    for number, text in enumerate(told(value)):
        delta(f"before {text} after. ", f"whole-{number}")
        for at in range(1, len(text)):
            for part in ("before ", text[:at], text[at:], " after. "):
                delta(part, f"cut-{number}-{at}")
        for character in f"before {text} after. ":
            delta(character, f"characters-{number}")
    for at in range(1, len(value)):
        delta(value[:at], f"between-{at}")
        result("tool.call.started", {"tool_call_id": "t", "tool_name": "x", "parameters": {}})
        delta(value[at:], f"between-{at}")
    half = len(value) // 2
    for first, text in ((True, value[:half]), (False, value[half:])):
        delta(text, "side-by-side")
        delta(" the other one ", "beside")


def show(result, value):
    """Every other kind of result, valid and not."""
    for text in told(value):
        deep = {"list": [text, {text: text}], "k": f"it is {text}."}
        message = {"role": "assistant", "content": f"it is {text}", "metadata": deep, "segments": [{"type": "text", "text": text}]}
        result("message.completed", {"message": message})
        result("message.completed", {"message": {"role": "assistant", "content": [{"type": "text", "text": text}]}})
        result("tool.call.started", {"tool_call_id": text, "tool_name": text, "parameters": deep})
        result("tool.call.completed", {"tool_call_id": "t", "tool_name": "x", "result": deep, "error": text})
        result("state.updated", {"scope": "conversation", "key": text[:200], "value": deep})
        result("state.updated", {"scope": text, "key": "k", "value": 1})
        blob = base64.b64encode(b"\0\1 " + text.encode()).decode()
        result("artifact.created", {"name": text.replace("/", "_").replace("\\", "_")[:200], "metadata": deep, "content_base64": blob})
        result("artifact.created", {"name": text[:200], "metadata": deep})
        result("action.requested", {"action": "message.send", "target": deep, "payload": {"text": text}})
        result("acme.thought", deep, {"usage": deep})
        result(("acme." + text.replace(" ", ""))[:100], deep)
        result("run.failed", {"code": "not a code: " + text, "message": text})
        result("message.delta", {"chunk": {"content": 5, "role": text}})
        os.write(2, f"stderr says {text}\n".encode())


def ask(run, value):
    """Calls of the proxy, allowed or not."""
    for text in told(value):
        blob = base64.b64encode(b"\0" + text.encode()).decode()
        deep = {"list": [text, {text: text}]}
        call(run, "state.set", scope="conversation", key="plain", value=deep)
        call(run, "state.set", scope="conversation", key=text[:200], value=text)
        call(run, "state.get", scope="conversation", key=text[:200])
        call(run, "state.get", scope=text, key="k")
        call(run, "storage.set", area="plugin", key="blob", value=blob)
        call(run, "storage.set", area="plugin", key=text[:200], value=blob)
        call(run, "storage.set", area="plugin", key="bad", value=text)
        call(run, "storage.get", area=text, key=text)
        call(run, "artifacts.create", name=text[:200], content_base64=blob, metadata=deep)
        call(run, "artifacts.metadata", artifact_id=text)
        call(run, "events.get", event_id=text)
        call(run, "history.search", query=text)
        call(run, "history.page", before_cursor=text)
        call(run, "platform.request_action", action=text, target=deep, payload=deep)
        call(run, text, key=text)
        call(text, "state.get", scope="conversation", key="plain")


def escaped(text):
    """JSON that hides a text behind escapes."""
    return "".join(f"\\u{ord(c):04x}" if ord(c) < 0x10000 else c for c in text)


def play(request, run, context):
    def result(kind, data, more={}):
        send(method="run.result", params={"run_id": run, "type": kind, "data": data, **more})

    token = context["runtime"]["metadata"]["run_token"]
    with open("forbidden", "a") as file:
        for value in (SECRET, token[4:]):
            file.writelines(json.dumps(form) + "\n" for form in forms(value))
    with open("token", "w") as file:
        file.write(token)
    values = {"secret": SECRET, "token": token}
    way = context["input"]["text"].split()[0]
    if way in ("tell", "fail"):
        for name, value in values.items():
            say(result, value, name)
            show(result, value)
            line = '{"jsonrpc":"2.0","method":"run.result","params":{"run_id":"%s","type":"message.completed","data":{"message":{"role":"assistant","content":"%s"}}}}\n'
            write((line % (run, escaped(value))).encode())
    if way == "tell":
        for value in values.values():
            ask(run, value)
        result("run.completed", {"message": {"role": "assistant", "content": SECRET + token}}, {"usage": {SECRET: token}})
    elif way == "fail":
        result("run.failed", {"code": "acme.failed", "message": f"{SECRET} and {token}", "details": {SECRET: token}})
    elif way == "wait":
        result("message.delta", {"chunk": {"role": "assistant", "content": "waiting"}})
        while not os.path.exists("go"):
            threading.Event().wait(0.01)
        result("run.completed", {})
    elif way == "error":
        return send(id=request, error={"code": -32050, "message": f"{SECRET} and {token}", "data": {SECRET: token}})
    elif way == "garbage":
        return write(f"{SECRET} and {token}\n".encode())
    elif way == "crash":
        os.write(2, f"last words: {SECRET} and {token}\n".encode())
        os._exit(3)
    send(id=request, result={})


def serve():
    permissions = {"storage": ["plugin"], "history": ["page", "search"], "events": ["get", "page"],
        "artifacts": ["metadata", "read", "create"], "platform_api": ["message.send"]}
    manifest = {"id": "plugin:test/leaky/main", "name": "main", "label": {"en_US": SECRET},
        "description": {"en_US": f"knows {SECRET}"}, "permissions": permissions}
    for line in sys.stdin:
        message = json.loads(line)
        request, method, params = message.get("id"), message.get("method"), message.get("params")
        if method == "initialize":
            send(id=request, result={"protocol_version": "1", "plugin": {"author": "test", "name": "leaky", "version": SECRET[:60]}})
        elif method == "list_agent_runners":
            send(id=request, result={"runners": [manifest]})
        elif method == "run_agent":
            threading.Thread(target=play, args=(request, params["context"]["run_id"], params["context"]), daemon=True).start()
        elif method is None:
            with asked:
                answers[request] = message
                asked.notify_all()
        elif request is not None:
            send(id=request, result={})


serve()
