"""Another runner, which the attackers must not reach. Logs every `SIGUSR1`."""

import json
import signal
import sys

signal.signal(signal.SIGUSR1, lambda *_: print("victim: signalled", file=sys.stderr, flush=True))
MANIFEST = {"id": "plugin:suite/victim/main", "name": "main", "label": {"en_US": "victim"}}
ANSWERS = {
    "initialize": {"protocol_version": "1", "plugin": {"author": "suite", "name": "victim", "version": "1"}},
    "list_agent_runners": {"runners": [MANIFEST]},
}
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        answer = ANSWERS.get(message["method"], {})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer}), flush=True)
