"""One page of LangBot's web chat: reads message chains from stdin, prints what the page shows after each turn.

    python langbot_chat.py ADDRESS TOKEN WORKSPACE
"""

import json
import sys

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

# A turn is over when nothing changes for this long after a final message,
QUIET_S = 0.7
# or when nothing comes for this long.
PATIENCE_S = 60


def turn(socket, known):
    """What each message showed, one after the other, until the answer is final."""
    messages, final, waited = {}, False, 0.0
    while not final or waited < QUIET_S:
        try:
            event = json.loads(socket.recv(timeout=QUIET_S))
            waited = 0.0
        except TimeoutError:
            waited += QUIET_S
            if waited > PATIENCE_S:
                break
            continue
        except ConnectionClosed:
            break
        if event["type"] == "response" and event["data"]["id"] not in known:
            messages.setdefault(event["data"]["id"], []).append(event["data"]["content"])
            final = event["data"]["is_final"]
    return messages


def main(address, token, workspace):
    # As a browser: without an origin it refuses. A busy machine may delay pings for long.
    with connect(address, origin="http://127.0.0.1", max_size=None, ping_interval=None) as socket:
        socket.send(json.dumps({"type": "authenticate", "token": token, "workspace_uuid": workspace}))
        while (event := json.loads(socket.recv(timeout=20)))["type"] != "connected":
            assert event["type"] != "error", event
        print("ready", flush=True)
        known = set()
        for line in sys.stdin:
            socket.send(json.dumps({"type": "message", "message": json.loads(line), "stream": True}))
            messages = turn(socket, known)
            known |= set(messages)
            print(json.dumps({"messages": list(messages.values())}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
