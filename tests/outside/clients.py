"""Reads a run with httpx-sse and verifies a delivery with the reference package of Standard Webhooks.

Everything that is expected is written down from the contract; both packages are used as they come.
"""

import argparse
import base64
import http.server
import json
import pathlib
import queue
import secrets
import threading

import httpx
import httpx_sse
import standardwebhooks

CONFIG = """
[agents.counting]
runner = "plugin:greenroom/echo/default"
events = []
config = { mode = "count", n = 20, delay_ms = 5 }

[agents.told]
runner = "plugin:greenroom/echo/default"
events = []
delivery = "hook"

[surfaces.hook]
kind = "webhook"
url = "http://127.0.0.1:%d/hook"
secret = { file = "secret" }
allow_private = true
"""


def prepare(folder: pathlib.Path) -> None:
    """Writes the host's configuration with a free port for the receiver."""
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        port = server.server_port
    secret = "whsec_" + base64.b64encode(secrets.token_bytes(24)).decode()
    (folder / "secret").write_text(secret)
    (folder / "port").write_text(str(port))
    (folder / "greenroom.toml").write_text(CONFIG % port)


def event(agent: str, text: str) -> dict:
    return {"event_type": "message.received", "conversation_id": agent, "agent": agent,
            "input": {"text": text}}


def told(frame: httpx_sse.ServerSentEvent) -> tuple:
    """The content of a frame; deltas that are stored together share the time of the first."""
    result = frame.json()
    del result["timestamp"]
    return frame.event, frame.id, result


def read_a_run(client: httpx.Client) -> None:
    """A stream is read to its end, and resumed after every number."""
    with httpx_sse.connect_sse(client, "POST", "/v1/events", json=event("counting", "")) as source:
        frames = list(source.iter_sse())
    accepted, results = frames[0], frames[1:]
    assert accepted.event == "accepted", accepted
    run_id = accepted.json()["run_id"]
    numbers = [int(frame.id) for frame in results]
    assert numbers == sorted(set(numbers)), numbers
    assert [frame.json()["type"] for frame in results] == [frame.event for frame in results]
    text = "".join(frame.json()["data"]["chunk"]["content"]
                   for frame in results if frame.event == "message.delta")
    assert text == "".join(f"{number} " for number in range(1, 21)), text
    assert results[-1].event == "run.completed", results[-1]
    for seen, number in enumerate(numbers, start=1):
        with httpx_sse.connect_sse(client, "GET", f"/v1/runs/{run_id}/results",
                                   headers={"Last-Event-ID": str(number)}) as source:
            rest = list(source.iter_sse())
        assert [told(frame) for frame in rest] == [told(frame) for frame in results[seen:]], number


def take_a_delivery(client: httpx.Client, folder: pathlib.Path) -> None:
    """The signature is valid for the sent body only."""
    requests: queue.Queue = queue.Queue()

    class Receiver(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            requests.put((dict(self.headers), body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    address = ("127.0.0.1", int((folder / "port").read_text()))
    with http.server.HTTPServer(address, Receiver) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        client.post("/v1/events", json=event("told", "signed 中文")).raise_for_status()
        headers, body = requests.get(timeout=30)
        server.shutdown()
    webhook = standardwebhooks.Webhook((folder / "secret").read_text())
    payload = webhook.verify(body, headers)
    assert payload["type"] == "message.completed", payload
    assert payload["message"]["content"] == "signed 中文", payload
    for changed in (body + b" ", body.replace(b"signed", b"forged")):
        try:
            webhook.verify(changed, headers)
        except standardwebhooks.WebhookVerificationError:
            continue
        raise AssertionError("a changed body was verified")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--url")
    parser.add_argument("--token")
    parser.add_argument("folder", type=pathlib.Path)
    asked = parser.parse_args()
    if asked.prepare:
        prepare(asked.folder)
        return
    headers = {"Authorization": f"Bearer {asked.token}"}
    with httpx.Client(base_url=asked.url, headers=headers, timeout=30, trust_env=False) as client:
        read_a_run(client)
        take_a_delivery(client, asked.folder)
    print(json.dumps({"sse": "ok", "webhook": "ok"}))


if __name__ == "__main__":
    main()
