"""What happens to a recorded host: every kind of fact, most of it settled, the rest under way when the host is killed.

Conversations whose name begins with `open` hold what is under way. Everything else is settled when `settled` returns,
and no later version may answer otherwise about it.
"""
import base64

from driving import wait_for

ENDED = ("completed", "failed", "cancelled", "timeout")
CENTURY_S = 3_000_000_000


class Play:
    """Sends events to a host and keeps the ids of what tests look at by name."""

    def __init__(self, host):
        self.host, self.names = host, {}

    def send(self, name, conversation, text, steps=(), agent="player", **more):
        """Sends an event, and keeps it and the ids that it got as `name`."""
        event = {
            "event_type": "message.received",
            "event_id": f"event-{name}",
            "conversation_id": conversation,
            "actor": {"actor_type": "user", "actor_id": "ann"},
            "input": {"text": text},
            "data": {"steps": list(steps)},
            "agent": agent,
            **more,
        }
        event = {key: value for key, value in event.items() if value is not None}
        answer = self.host.json("POST", "/v1/events", event)
        self.names[name] = {"event": event, "answer": answer, "run_id": answer["run_id"]}
        return answer

    def ended(self, name):
        run_id, event = self.names[name]["run_id"], self.names[name].get("event", {})
        workspace = event.get("workspace_id", "default")

        def look():
            run = self.host.get(f"/v1/runs/{run_id}?workspace_id={workspace}")
            open_deliveries = [one for one in run.get("deliveries", []) if one["status"] in ("pending", "claimed")]
            return run if run["status"] in ENDED and not open_deliveries else None

        return wait_for(f"the end of {name}", look)

    def play(self, name, conversation, text, steps=(), **more):
        """Sends an event whose run goes on to its end."""
        self.send(name, conversation, text, steps, **more)
        return self.ended(name)

    def pending(self, count):
        def look():
            items = self.host.get("/v1/approvals?status=pending")["items"]
            return items if len(items) == count else None

        return wait_for(f"{count} pending approvals", look)

    def answer(self, name, decision):
        """Answers the one pending approval."""
        (approval,) = self.pending(1)
        body = {"decision": decision, "nonce": approval["nonce"]}
        self.host.json("POST", f"/v1/approvals/{approval['approval_id']}", body)
        self.names[name] = {"approval_id": approval["approval_id"]}


def blob(text):
    return base64.b64encode(text.encode()).decode()


def tool(tool_name, call_id, **parameters):
    params = {"tool_name": tool_name, "tool_call_id": call_id, "parameters": parameters}
    return ["call", "tools.call", params]


def module(name, method, call_id, **given):
    return tool("project_cli", call_id, module=name, method=method, input=given)


def set_state(scope, key, value, **more):
    return ["call", "state.set", {"scope": scope, "key": key, "value": value, **more}]


def asks(text):
    return {"action": "message.send", "payload": {"text": text}}


def expiring(play):
    """While approvals expire after a second: one that nobody answers."""
    steps = [["call", "platform.request_action", asks("too late")], ["tell_answer"], ["end"]]
    play.play("expired", "approvals", "Ask me something and wait in vain", steps)


def settled(play):
    talk(play)
    ends(play)
    keep(play)
    use_tools(play)
    use_models(play)
    deliver(play)
    approve(play)
    refuse(play)
    others(play)


def talk(play):
    """Messages in two languages, threads, deltas that are stored together, the built-in agents."""
    words = ["The ", "blue ", "bicycle ", "stands ", "behind ", "the ", "green ", "house"]
    play.play("english", "talk", "Where is the blue bicycle?", [["say", *words], ["end"]])
    chinese = ["蓝色", "的", "自行车", "停在", "图书馆", "后面"]
    play.play("chinese", "talk", "蓝色自行车在哪里？", [["say", *chinese], ["end"]])
    both = [["say", "First ", "half"], ["message", "First half"], ["message", "第二句话"], ["end"]]
    play.play("threaded", "talk", "A question in a thread", both, thread_id="thread-1")
    play.play("paged", "talk", "Read back a page", [["call", "history.page", {"limit": 3}], ["tell_answer"], ["end"]])
    play.play("assistant", "hello", "Hello, who are you?", agent="assistant")
    play.play("assistant-zh", "hello", "你好，请介绍一下自己", agent="assistant")
    play.play("echo", "hello", "echo echo", agent="echo")
    subject = {"subject_type": "ticket", "subject_id": "T-7", "data": {"priority": "high"}}
    play.play("ticket", "talk", None, [["message", "A ticket was opened"], ["end"]], agent=None,
              event_type="ticket.opened", subject=subject, metadata={"origin": "helpdesk"}, source="helpdesk")
    replay = f"/v1/runs/{play.names['english']['run_id']}/replay"
    play.names["replayed"] = play.host.json("POST", replay, {})
    play.ended("replayed")
    play.send("unbound", "nobody", "Nobody takes this", agent=None, event_type="weather.changed")
    play.send("unplaced", None, None, agent=None, event_type="weather.changed")


def ends(play):
    """Runs in every status that is an end, and what a run said that took no number."""
    play.play("failed", "ends", "Fail with a code", [["fail", "acme.broken", "it broke"]])
    play.play("no-terminal", "ends", "Say no end", [["say", "half a sentence"]])
    play.play("timeout", "ends", "Take too long", [["say", "slowly"], ["hang"]], agent="hasty")
    play.play("crashed", "ends", "Crash", [["say", "about to crash"], ["crash"]])
    play.send("cancelled", "ends", "Wait until you are cancelled", [["say", "waiting"], ["hang"]])
    running(play, "cancelled")
    play.host.json("POST", f"/v1/runs/{play.names['cancelled']['run_id']}/cancel", {})
    play.ended("cancelled")
    play.send("replaced", "replaced", "Too old", [["say", "old"], ["hang"]], agent="replacing")
    running(play, "replaced")
    play.play("replacement", "replaced", "Newer", [["say", "new"], ["end"]], agent="replacing")
    wrong = ["result", "message.completed", {"message": 5}]
    unknown = ["result", "acme.thought", {"depth": 3}]
    play.play("diagnosed", "ends", "Send what cannot be", [wrong, unknown, ["message", "sorry"], ["end"]])


def running(play, name):
    """Waits until the host has stored something that the run said."""
    run_id = play.names[name]["run_id"]
    wait_for(f"output of {name}", lambda: bool(play.host.get(f"/v1/runs/{run_id}/results")["items"]))


def keep(play):
    """State of every scope, storage of every area, artifacts of every origin."""
    steps = [set_state(scope, "city", f"Taipei of the {scope}")
             for scope in ("conversation", "actor", "subject", "runner", "binding")]
    steps += [
        set_state("conversation", "city", "Taipei, the second version"),
        set_state("conversation", "lasting", {"deep": [1, 2.5, None, "深"]}, ttl_s=CENTURY_S),
        set_state("conversation", "passing", "gone when this is read", ttl_s=1),
        ["result", "state.updated", {"scope": "conversation", "key": "told", "value": ["by", "a", "result"]}],
        *(["call", "storage.set", {"area": area, "key": "notes/one", "value": blob(f"bytes of the {area}")}]
          for area in ("plugin", "workspace", "binding")),
        ["message", "kept"],
        ["end"],
    ]
    play.play("kept", "keep", "Keep all this", steps, subject={"subject_type": "ticket", "subject_id": "T-7"})
    made = {"name": "report.txt", "content_base64": blob("An artifact of a call. 报告\n"), "metadata": {"pages": 1}}
    passing = {"name": "passing.txt", "content_base64": blob("It will not last a second."), "expires_in_s": CENTURY_S}
    result = {"name": "result.txt", "mime_type": "text/plain", "content_base64": blob("An artifact of a result.\n")}
    steps = [["call", "artifacts.create", made], ["call", "artifacts.create", passing],
             ["result", "artifact.created", result], ["message", "drawn"], ["end"]]
    play.play("drew", "keep", "Make artifacts", steps)
    upload = "/v1/artifacts?name=upload.txt&conversation_id=keep"
    body = "Uploaded by hand. 上传\n".encode()
    play.names["upload"] = play.host.json("POST", upload, body, {"content-type": "text/plain"})
    attachment = {"artifact_id": play.names["upload"]["artifact_id"]}
    seen = [["call", "artifacts.metadata", attachment], ["message", "seen"], ["end"]]
    play.play("attached", "keep", None, seen,
              input={"text": "Look at this", "attachments": [attachment]})


def use_tools(play):
    """Calls of tools: of a plugin, of the project modules, and as a runner tells of its own."""
    meeting = {"title": "Dinner with Bob", "start_at": "2026-04-21T19:00:00+08:00",
               "end_at": "2026-04-21T21:00:00+08:00", "timezone": "Asia/Shanghai"}
    own = {"tool_call_id": "own-1", "tool_name": "search", "parameters": {"q": "bicycles"}}
    steps = [
        tool("shed.note", "note-1", text="a note 笔记"),
        tool("shed.note", "note-2", wrong=1),
        tool("shed.note", "note-3", text="too long to be handed on as it is " * 100),
        module("calendar", "create", "create-1", **meeting),
        module("memory", "update", "memory-1", set={"city": "Taipei", "tea": "乌龙"}),
        ["result", "tool.call.started", own],
        ["result", "tool.call.completed", {**own, "result": {"found": 3}, "error": None}],
        ["message", "tools used"],
        ["end"],
    ]
    play.play("tools", "tools", "Use all your tools", steps)
    event_id = records(play, "ann", {"op": "list", "module": "calendar"})["items"][0]["id"]
    play.names["dinner"] = {"record_id": event_id}
    share = [module("calendar", "share", "share-1", event_id=event_id, **{"with": ["bob", "eve"]}), ["end"]]
    play.play("shared", "tools", "Invite Bob and Eve", share)
    accept = [module("calendar", "accept_invite", "accept-1", event_id=event_id), ["end"]]
    play.play("accepted", "tools", "Accept", accept, actor={"actor_type": "user", "actor_id": "bob"})
    for name in ("Bob Zimmermann", "李雷"):
        records(play, "ann", {"op": "put", "module": "contacts", "body": {"name": name}})


def records(play, actor, operation):
    return play.host.json("POST", "/v1/tool-runtime/records", operation, {"x-greenroom-actor": actor})


def use_models(play):
    """Calls of models that answer, refuse and cost something."""
    def says(model, text):
        return {"model_id": model, "messages": [{"role": "user", "content": text}]}

    steps = [
        ["call", "models.invoke", says("priced", "six times seven")],
        ["call", "models.stream", says("priced", "it again")],
        ["call", "models.invoke", says("priced", "refuse")],
        ["call", "models.invoke", says("main", "hello")],
        ["message", "models asked"],
        ["end"],
    ]
    play.play("models", "models", "Ask the models", steps)


def deliver(play):
    """Deliveries that were taken, refused, and broken off."""
    for surface in ("hook", "refusing", "dropping"):
        said = [["message", f"for {surface}"], ["end"]]
        play.play(f"delivered-{surface}", "deliveries", f"Send it to {surface}", said,
                  delivery={"surface": surface})


def approve(play):
    """Approvals that were allowed and denied, by a call that waits and by a result that does not."""
    for name, decision in (("allowed", "allow"), ("denied", "deny")):
        steps = [["call", "platform.request_action", asks(f"please {decision} this")], ["tell_answer"], ["end"]]
        play.send(f"{name}-run", "approvals", f"Ask, to be {name}", steps)
        play.answer(name, decision)
        play.ended(f"{name}-run")
    wish = [["result", "action.requested", asks("a wish")], ["end"]]
    play.send("wish-run", "approvals", "Wish something", wish)
    play.answer("wish", "allow")
    play.ended("wish-run")


def refuse(play):
    """Calls that are refused: each leaves a record."""
    steps = [
        ["call", "history.page", {}],
        ["call", "state.get", {"scope": "conversation", "key": "city"}],
        ["call", "storage.get", {"area": "plugin", "key": "notes/one"}],
        ["call", "tools.call", {"tool_name": "shed.note", "tool_call_id": "no", "parameters": {"text": "x"}}],
        ["call", "artifacts.metadata", {"artifact_id": "art_of_nobody"}],
        ["stray_call", "state.get", {"scope": "conversation", "key": "city"}],
        ["message", "refused"],
        ["end"],
    ]
    play.play("denied-calls", "refusals", "Try what you may not", steps, agent="poor")
    allowed = [["call", "history.page", {"limit": 3}], ["call", "history.search", {"query": "bicycle"}],
               ["call", "events.page", {"limit": 3}], ["message", "looked around"], ["end"]]
    play.play("looked", "refusals", "Look around", allowed)


def others(play):
    """Another workspace, and steering input that a run has pulled."""
    play.play("elsewhere", "elsewhere", "In another workspace", [["message", "over there"], ["end"]],
              agent="echo", workspace_id="second")
    steps = [["say", "listening"], ["pull"], ["message", "heard both"], ["end"]]
    play.send("pulling", "steered", "Wait for more", steps, agent="steered")
    running(play, "pulling")
    play.send("pulled", "steered", "And this as well", agent="steered")
    play.ended("pulling")


def under_way(play):
    """What the kill interrupts. Returns when all of it is stored."""
    hang = [["say", "under ", "way ", "还没"], ["hang"]]
    play.send("open-running", "open-lane", "Never end", hang)
    running(play, "open-running")
    for number in (1, 2):
        steps = [["message", f"queued {number}"], ["end"]]
        play.send(f"open-queued-{number}", "open-lane", f"Queued message {number}", steps)
    play.send("open-retrying", "open-retry", "End when tried again",
              [["say", "half "], ["hang_at_first"], ["say", "whole"], ["end"]], agent="retrying")
    running(play, "open-retrying")
    play.send("open-steered", "open-steering", "Never pull", [["say", "busy"], ["hang"]], agent="steered")
    running(play, "open-steered")
    for number in (1, 2):
        steps = [["message", f"requeued {number}"], ["end"]]
        play.send(f"open-waiting-{number}", "open-steering", f"Waiting input {number}", steps, agent="steered")
    play.send("open-tool", "open-tool", "Call a tool that never answers", [tool("shed.hold", "hold-1", text="x")])
    endless = {"model_id": "priced", "messages": [{"role": "user", "content": "silence"}]}
    play.send("open-model", "open-model", "Ask a model that never answers", [["call", "models.stream", endless]])
    wish = [["result", "action.requested", asks("an old wish")], ["end"]]
    play.send("open-wish", "open-wish", "Wish for later", wish)
    play.names["wished"] = {"approval_id": play.pending(1)[0]["approval_id"]}
    question = [["call", "platform.request_action", asks("an old question")]]
    play.send("open-asking", "open-asking", "Ask and wait", question)
    asked = [one for one in play.pending(2) if one["approval_id"] != play.names["wished"]["approval_id"]]
    play.names["asked"] = {"approval_id": asked[0]["approval_id"]}
    for number in (1, 2):
        steps = [["message", f"stuck {number}"], ["end"]]
        play.send(f"open-stuck-{number}", "open-delivery", f"Deliver {number}", steps, delivery={"surface": "stuck"})

    def is_stuck():
        runs = [play.host.get(f"/v1/runs/{play.names[f'open-stuck-{number}']['run_id']}") for number in (1, 2)]
        statuses = [one["status"] for run in runs for one in run["deliveries"]]
        return statuses == ["claimed", "pending"]

    wait_for("a delivery that is claimed and one behind it", is_stuck)
