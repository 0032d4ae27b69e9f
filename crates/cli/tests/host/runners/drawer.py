"""A plugin without runners that offers one tool with a rich schema: it gives back what it was given."""
import json, sys
from wire import send

NOTE = {"type": "object", "additionalProperties": False, "required": ["text"],
        "$defs": {"Place": {"type": "object", "properties": {"line": {"type": "integer"}, "file": {"type": "string"}}}},
        "properties": {
            "text": {"type": "string", "description": "What to note", "minLength": 1},
            "count": {"type": "integer", "minimum": 1},
            "ratio": {"type": "number"},
            "pinned": {"type": "boolean"},
            "level": {"enum": ["low", "high"]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "sizes": {"type": "array", "items": {"type": "integer"}},
            "at": {"$ref": "#/$defs/Place"},
            "owner": {"type": ["string", "null"]}}}

TOOLS = [
    {"name": "note", "description": "Notes a text. It forgets nothing.", "input_schema": NOTE, "risk": "write"},
    {"name": "peek", "description": "Looks without touching", "input_schema": {"type": "object"}, "risk": "read"},
]

for line in sys.stdin:
    message = json.loads(line)
    request, method, params = message.get("id"), message.get("method"), message.get("params")
    if method == "initialize":
        send(id=request, result={"protocol_version": "1", "plugin": {"author": "test", "name": "scribe", "version": "1"}})
    elif method == "list_agent_runners":
        send(id=request, result={"runners": []})
    elif method == "list_tools":
        send(id=request, result={"tools": TOOLS})
    elif method == "call_tool":
        send(id=request, result={"result": {"noted": params["parameters"]}})
    elif request is not None:
        send(id=request, result={})
