"""Writes on and on, from several threads: each notes what it tries and what the host has acknowledged."""
import base64, itertools, json, os, threading
from wire import ask, serve

WRITERS, KEYS = 6, 5


def call(method, params):
    answered, answers = threading.Event(), []
    ask(method, params, lambda answer: (answers.append(answer), answered.set()))
    answered.wait()
    return answers[0]


def write_on(run, life, name):
    log = os.open(f"{name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    note = lambda *words: os.write(log, (" ".join(map(str, words)) + "\n").encode())
    kind, place = ("state", {"scope": "runner"}) if name < f"w{WRITERS // 2}" else ("storage", {"area": "plugin"})
    for number in itertools.count(life * 1_000_000):
        key = f"{name}-{number % KEYS}"
        text = str(number) + "." * (number * 7919 % 20_000)
        value = text if kind == "state" else base64.b64encode(text.encode()).decode()
        # Every seventh takes the key away.
        word, more = ("set", {"value": value}) if number % 7 else ("delete", {})
        note("tried", key, number)
        answer = call(f"{kind}.{word}", {"run_id": run, "key": key, **place, **more})
        assert "result" in answer, answer
        note("kept", key, number)


def play(request, run, context):
    life = int(context["input"]["text"])
    for number in range(WRITERS):
        threading.Thread(target=write_on, args=(run, life, f"w{number}"), daemon=True).start()


serve("scribe", play)
