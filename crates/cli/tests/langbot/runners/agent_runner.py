# A plugin of the older dialect (`AgentRunner`, `run_agent`), written against the frames alone: no SDK.
# Does what the input says; serves at most 128 actions at once, as the SDK does.
import json
import os
import pathlib
import sys
import threading

CHUNK = 16 * 1024
writing = threading.Lock()
waiting = {}
plugin_config = {}
numbers = iter(range(1, 1 << 30))
active = 0


def write(message):
    text = json.dumps(message, ensure_ascii=False)
    lines = [text]
    if len(text.encode()) > CHUNK:
        lines = [json.dumps({"type": "chunk_start", "total_size": len(text.encode())})]
        offset = 0
        for at in range(0, len(text), CHUNK // 4):
            piece = text[at:at + CHUNK // 4]
            lines.append(json.dumps({"type": "chunk_data", "data": piece, "offset": offset}))
            offset += len(piece.encode())
        lines.append(json.dumps({"type": "chunk_end"}))
    with writing:
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()


def ask(action, **data):
    number = next(numbers)
    answered = threading.Event()
    waiting[number] = (answered, [])
    write({"seq_id": number, "action": action, "data": data})
    answered.wait()
    answer = waiting.pop(number)[1][0]
    return answer["data"] if answer["code"] == 0 else {"refused": answer["data"].get("error")}


def tell(number, data, status="continue"):
    write({"seq_id": number, "code": 0, "message": "success", "data": data, "chunk_status": status})


def container():
    spec = {
        "protocol_version": "1",
        "capabilities": {"streaming": True, "interactions": True},
        "permissions": {"artifacts": ["metadata", "read"], "storage": ["plugin"], "history": ["page"],
                        "models": ["count_tokens", "stream", "dream"], "tools": ["detail", "call"],
                        "interactions": ["request"]},
        "context": {"supports_history_pull": True},
        "config": [{"name": "model", "type": "llm-model-selector", "required": True},
                   {"name": "rounds", "type": "integer", "default": 5}],
    }
    form = [{"name": "region", "type": "string", "default": "eu"}, {"name": "tone", "type": "string"}]
    tool = {"kind": "Tool", "metadata": {"name": "add", "description": {"en_US": "Adds two numbers."}},
            "spec": {"parameters": {"properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}}}
    others = [tool, {"kind": "Command", "metadata": {"name": "weather"}, "spec": {}},
              {"kind": "EventListener", "metadata": {"name": "default"}, "spec": {}}]
    runner = {"kind": "AgentRunner", "metadata": {"name": "main", "label": {"en_US": "Older"}}, "spec": spec}
    metadata = {"author": "greenroom-tests", "name": "older", "version": "0.1.0"}
    return {
        "manifest": {"owner": "builtin", "manifest": {"kind": "Plugin", "metadata": metadata,
                                                      "spec": {"config": form}}},
        "plugin_config": {}, "status": "initialized",
        "components": [{"manifest": {"manifest": one}, "component_config": {}} for one in [runner, *others]],
    }


def message(run_id, text):
    return {"run_id": run_id, "type": "message.completed",
            "data": {"message": {"role": "assistant", "content": text}}}


def settings(context):
    models = [[model["model_id"], sorted(model["operations"])] for model in context["resources"]["models"]]
    return {"plugin": plugin_config, "runner": context["config"], "models": models}


ORDER = {"interaction_id": "order-1", "kind": "choice", "title": "What may it be?", "description": None,
         "fields": [{"id": "drink", "label": "Drink", "type": "text", "required": True, "options": [],
                     "placeholder": None, "default": None}],
         "actions": [{"id": "order", "label": "Order", "style": "primary"}],
         "expires_at": None, "fallback_text": "Reply with a drink."}


def run(number, context):
    global active
    run_id, text = context["run_id"], context["input"]["text"]
    end = {"run_id": run_id, "type": "run.completed", "data": {}}
    if context["event"]["event_type"] == "interaction.submitted":
        tell(number, message(run_id, json.dumps(context["input"]["interaction"])))
        tell(number, end)
    elif text == "ask":
        tell(number, message(run_id, json.dumps(context["delivery"].get("interactions"))))
        tell(number, {"run_id": run_id, "type": "action.requested",
                      "data": {"action": "interaction.requested", "target": None, "payload": ORDER}})
        tell(number, end)
    elif text == "add":
        told = ask("call_tool", run_id=run_id, tool_name="older.add", parameters={"a": 2, "b": 3})
        tell(number, message(run_id, json.dumps(told["result"])))
        tell(number, end)
    elif text == "settings":
        tell(number, message(run_id, json.dumps(settings(context))))
        tell(number, end)
    elif text == "no terminal":
        tell(number, message(run_id, "that was it"))
    elif text == "after":
        tell(number, end)
        tell(number, message(run_id, "too late"))
    elif text == "seed failure":
        tell(number, {"run_id": run_id, "type": "run.failed",
                      "data": {"code": "older.no", "message": "it cannot be done", "retryable": True}})
    elif text == "not a result":
        tell(number, {"hello": "there"})
        tell(number, message("another-run", "stolen"))
        tell(number, end)
    elif text == "poll":
        pathlib.Path("polls").touch()
        told = ask("run_get", run_id=run_id, target_run_id=run_id)
        while told.get("status") == "running":
            told = ask("run_get", run_id=run_id, target_run_id=run_id)
        pathlib.Path("polled").write_text(json.dumps(told))
    elif text == "long":
        tell(number, message(run_id, "long ü " * 10_000))
        tell(number, end)
    elif text == "files":
        ref = context["input"]["attachments"][0]
        metadata = ask("artifact_metadata", run_id=run_id, artifact_id=ref["id"])
        part = ask("artifact_read", run_id=run_id, artifact_id=ref["id"], offset=1, limit=3)
        missing = ask("artifact_read", run_id=run_id, artifact_id="none", offset=0, limit=3)
        tell(number, message(run_id, json.dumps([ref, metadata, part, missing])))
        tell(number, end)
    elif text == "error":
        write({"seq_id": number, "code": 1, "message": "ValueError: no", "data": {}, "chunk_status": "continue"})
        active -= 1
        return
    else:
        tell(number, message(run_id, f"{context['host']} {context['protocol_version']} said {text}"))
        tell(number, end)
    tell(number, {}, "end")
    active -= 1


def serve(frame):
    global active
    number, action, data = frame["seq_id"], frame["action"], frame["data"]
    if action == "get_plugin_container":
        tell(number, container())
    elif action == "run_agent":
        active += 1
        if active > 128:
            active -= 1
            write({"seq_id": number, "code": 1, "message": "busy", "data": {}, "chunk_status": "continue"})
            return
        threading.Thread(target=run, args=(number, data["context"]), daemon=True).start()
    elif action == "initialize_plugin":
        plugin_config.update(data["plugin_settings"]["plugin_config"])
        tell(number, {})
    elif action == "call_tool":
        given = data["tool_parameters"]
        tell(number, {"tool_response": {"sum": given["a"] + given["b"]}})
    elif action == "execute_command":
        command = data["command_context"]
        told = f"{command['command']} of {' '.join(command['params'][1:])}"
        tell(number, {"command_response": {"text": told}})
        tell(number, {}, "end")
    elif action == "emit_event":
        with open("heard", "a") as file:
            file.write(data["event_context"]["event_name"] + "\n")
        tell(number, {"emitted_plugins": [], "event_context": data["event_context"]})
    elif action == "shutdown":
        tell(number, {})
    else:
        write({"seq_id": number, "code": 1, "message": f"Action {action} not found", "data": {},
               "chunk_status": "continue"})


def frames():
    pieces = None
    for line in sys.stdin:
        assert len(line.encode()) <= 64 * 1024, "a line is too long"
        frame = json.loads(line)
        kind = frame.get("type")
        if kind == "chunk_start":
            pieces, total = [], frame["total_size"]
        elif kind == "chunk_data":
            assert frame["offset"] == sum(len(piece.encode()) for piece in pieces)
            pieces.append(frame["data"])
        elif kind == "chunk_end":
            whole = "".join(pieces)
            assert len(whole.encode()) == total
            yield json.loads(whole)
        else:
            yield frame


def register():
    secret = os.environ["LANGBOT_PLUGIN_REGISTRATION_CAPABILITY"]
    ask("register_plugin", plugin_container=container(), prod_mode=True, plugin_debug_key="",
        registration_capability=secret)


print("Starting plugin", flush=True)
threading.Thread(target=register, daemon=True).start()
for frame in frames():
    if "code" in frame:
        answered, told = waiting[frame["seq_id"]]
        told.append(frame)
        answered.set()
    else:
        serve(frame)
