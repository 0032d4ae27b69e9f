"""A harness for tests: an agent of the Agent Client Protocol that does what a message says.

Sessions are stored in its home, so that another process can load them.
"""

import json
import os
import pathlib
import subprocess
import sys
import threading

STORE = pathlib.Path(os.environ["HOME"]) / "sessions.json"
LOCK = threading.Lock()
ANSWERS: dict[str, list] = {}
CANCELLED = threading.Event()
DOOMED = threading.Event()


def send(message: object) -> None:
    with LOCK:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def stored() -> dict:
    return json.loads(STORE.read_text()) if STORE.exists() else {}


def store(sessions: dict) -> None:
    STORE.write_text(json.dumps(sessions))


def update(session: str, update_kind: str, **fields: object) -> None:
    send({"jsonrpc": "2.0", "method": "session/update",
          "params": {"sessionId": session, "update": {"sessionUpdate": update_kind, **fields}}})


def say(session: str, text: str) -> None:
    update(session, "agent_message_chunk", content={"type": "text", "text": text})


def ask(session: str, kind: str) -> dict:
    call = {"toolCallId": "call-1", "title": f"do {kind}", "kind": kind, "status": "pending",
            "rawInput": {"command": ["rm", "-r", "a b"]}, "locations": [{"path": "/project/x"}],
            "content": [{"type": "diff", "path": "/project/x", "oldText": "one", "newText": "two"}]}
    options = [{"optionId": f"{word}!", "kind": word, "name": word}
               for word in ("allow_always", "allow_once", "reject_always", "reject_once")]
    return question(session, call, options)


def question(session: str, call: dict, options: list) -> dict:
    done = threading.Event()
    ANSWERS["q1"] = [done, None]
    send({"jsonrpc": "2.0", "id": "q1", "method": "session/request_permission",
          "params": {"sessionId": session, "toolCall": call, "options": options}})
    done.wait()
    return ANSWERS["q1"][1]


def attempt(word: str, path: str) -> str:
    try:
        if word == "read":
            open(path, "rb").read()
        elif word == "append":
            open(path, "ab").write(b"x")
        elif word == "list":
            os.listdir(path)
        elif word == "chmod":
            os.chmod(path, 0o644)
        return "ok"
    except OSError as error:
        return type(error).__name__


def work(session: str, path: str) -> dict:
    """A plan that fills, a changed file after a question, and a command with output."""
    def plan(*states: str) -> None:
        steps = zip(("Read the file", "Change the greeting", "Run the tests"), states)
        update(session, "plan", entries=[{"content": text, "status": state, "priority": "medium"} for text, state in steps])

    plan("completed", "in_progress", "pending")
    update(session, "agent_thought_chunk", content={"type": "text", "text": "The greeting is in one place."})
    say(session, "I change the greeting.")
    old = "".join(f"line {number}\n" for number in range(1, 13))
    call = {"toolCallId": f"edit-{path}", "title": f"Edit {path}", "kind": "edit", "status": "pending", "locations": [{"path": path}],
            "content": [{"type": "diff", "path": path, "oldText": old, "newText": old.replace("line 6\n", "hello\nworld\n")}]}
    options = [{"optionId": word, "kind": word, "name": word} for word in ("allow_once", "reject_once")]
    outcome = question(session, call, options)["outcome"]
    allowed = outcome.get("optionId") == "allow_once"
    update(session, "tool_call_update", toolCallId=call["toolCallId"], status="completed" if allowed else "failed")
    if allowed:
        pathlib.Path(path).write_text("hello\n")
    plan("completed", "completed", "in_progress")
    run = {"toolCallId": f"run-{path}", "title": "make test", "kind": "execute", "rawInput": {"command": ["make", "test"]}}
    update(session, "tool_call", status="in_progress", **run)
    update(session, "tool_call_update", toolCallId=run["toolCallId"], status="completed",
           content=[{"type": "content", "content": {"type": "text", "text": "12 passed, 0 failed"}}])
    plan("completed", "completed", "completed")
    say(session, "All tests pass.")
    return {"stopReason": "end_turn", "usage": {"inputTokens": 1200, "outputTokens": 80}}


def perform(session: str, text: str) -> dict:
    word, _, rest = text.partition(" ")
    if word == "ask":
        outcome = ask(session, rest)["outcome"]
        status = "completed" if outcome.get("optionId") == "allow_once!" else "failed"
        update(session, "tool_call_update", toolCallId="call-1", status=status)
        say(session, outcome.get("optionId", outcome["outcome"]))
    elif word == "garbage":
        with LOCK:
            sys.stdout.write('this is no message\n[1, 2]\n{"id": 999, "result": {}}\n{"jsonrpc": "2.0"}\n')
            sys.stdout.flush()
        update(session, "a_kind_of_the_future", stuff=[1])
        say(session, "still here")
    elif word == "crash":
        say(session, "before the crash")
        print("the last words", file=sys.stderr, flush=True)
        os._exit(3)
    elif word == "doomed":
        DOOMED.set()
        say(session, "doomed")
    elif word == "hang":
        say(session, "hanging")
        threading.Event().wait()
    elif word == "wait":
        say(session, "waiting")
        CANCELLED.wait()
        return {"stopReason": "cancelled"}
    elif word == "orphan":
        # Found by its arguments: it may have another id outside.
        time = f"600.{os.getpid()}{os.urandom(4).hex().translate(str.maketrans('abcdef', '123456'))}"
        subprocess.Popen(["setsid", "sleep", time], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        say(session, time)
    elif word == "try":
        say(session, attempt(*rest.split(" ", 1)))
    elif word == "plan":
        update(session, "plan", entries=[{"content": "look", "status": "completed", "priority": "high"},
                                         {"content": "write", "status": "pending"}])
        update(session, "agent_thought_chunk", content={"type": "text", "text": "I think"})
        say(session, "planned")
    elif word == "work":
        return work(session, rest or "README.md")
    elif word == "end":
        return {"stopReason": rest}
    elif word == "forget":
        sessions = stored()
        sessions.pop(session)
        store(sessions)
        say(session, "forgotten")
        return {"stopReason": "end_turn", "usage": {"inputTokens": 3, "outputTokens": 4}}
    elif word == "write":
        path = pathlib.Path(rest).expanduser()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("content\n")
        say(session, "written")
    elif word == "read":
        path = pathlib.Path(rest).expanduser()
        say(session, path.read_text().rstrip("\n") if path.exists() else "missing")
    elif word == "environment":
        say(session, json.dumps(dict(os.environ)))
    else:
        say(session, " | ".join(stored()[session]))
    return {"stopReason": "end_turn"}


def prompt(id_: object, session: str, blocks: list) -> None:
    if DOOMED.is_set():
        os._exit(3)
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    others = [block["type"] for block in blocks if block["type"] != "text"]
    sessions = stored()
    sessions.setdefault(session, []).append("; ".join(texts + others))
    store(sessions)
    CANCELLED.clear()
    send({"jsonrpc": "2.0", "id": id_, "result": perform(session, texts[-1])})


def handle(message: dict) -> None:
    method, id_, params = message.get("method"), message.get("id"), message.get("params") or {}
    if method is None:
        if id_ in ANSWERS:
            ANSWERS[id_][1] = message["result"]
            ANSWERS[id_][0].set()
    elif method == "initialize":
        send({"jsonrpc": "2.0", "id": id_, "result": {
            "protocolVersion": 1, "agentCapabilities": {"loadSession": True, "promptCapabilities": {"image": True}}}})
    elif method == "session/new":
        sessions = stored()
        session = f"s{len(sessions) + 1}-{os.getpid()}"
        store({**sessions, session: []})
        send({"jsonrpc": "2.0", "id": id_, "result": {"sessionId": session}})
    elif method == "session/load":
        session = params["sessionId"]
        if session not in stored():
            send({"jsonrpc": "2.0", "id": id_, "error": {"code": -32603, "message": "no such session"}})
            return
        for text in stored()[session]:
            update(session, "user_message_chunk", content={"type": "text", "text": text})
            say(session, "an answer of earlier")
        send({"jsonrpc": "2.0", "id": id_, "result": None})
    elif method == "session/prompt":
        threading.Thread(target=prompt, args=(id_, params["sessionId"], params["prompt"]), daemon=True).start()
    elif method == "session/cancel":
        CANCELLED.set()
    elif id_ is not None:
        send({"jsonrpc": "2.0", "id": id_, "error": {"code": -32601, "message": "method not found"}})


for line in sys.stdin:
    handle(json.loads(line))
