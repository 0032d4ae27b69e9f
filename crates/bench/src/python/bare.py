"""The baseline: the frames of one run, without any SDK."""

import json
import sys

for line in sys.stdin:
    request = json.loads(line)
    params = request.get("params", {})
    if request["method"] == "run_agent":
        run_id, text = params["context"]["run_id"], params["context"]["input"]["text"]
        results = [
            ("message.delta", {"chunk": {"role": "assistant", "content": text}}),
            ("message.completed", {"message": {"role": "assistant", "content": text}}),
            ("run.completed", {}),
        ]
        for kind, data in results:
            result = {"run_id": run_id, "type": kind, "data": data}
            print(json.dumps({"jsonrpc": "2.0", "method": "run.result", "params": result}))
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {}}), flush=True)
