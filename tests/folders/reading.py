"""What a host answers about the settled facts: each read with its answer, for a later version to be compared with."""
import hashlib
import urllib.parse

from driving import wait_for

OPEN = "open"
SEARCHES = ["bicycle", "green house", "自行车", "图书馆", "乌龙", "Nobody takes this"]


def is_settled(item):
    """Whether no later version may answer otherwise about it."""
    conversation = item.get("conversation_id") or ""
    return not conversation.startswith(OPEN) and item.get("status") not in ("pending", "claimed", "queued", "running")


class Reading:
    def __init__(self, host):
        self.host, self.reads, self.bytes = host, [], []
        runs = host.get("/v1/runs?limit=200")["items"]
        self.open_runs = {run["run_id"] for run in runs if not is_settled(run)}
        self.runs = [run["run_id"] for run in runs if is_settled(run)]

    def one(self, target):
        self.reads.append({"get": target, "body": self.host.get(target)})

    def list(self, target):
        """A page, without what is not settled; every item of it must be there later, in this order."""
        page = self.host.get(target)
        items = [item for item in page["items"] if is_settled(item) and item.get("run_id") not in self.open_runs]
        self.reads.append({"get": target, "items": items})
        return page

    def pages(self, target, limit):
        """All pages of a list. The cursors belong to what is recorded: later versions have to know them."""
        separator = "&" if "?" in target else "?"
        page = self.list(f"{target}{separator}limit={limit}")
        while page["has_more"]:
            cursor = urllib.parse.quote(str(page["next_cursor"]))
            page = self.list(f"{target}{separator}limit={limit}&cursor={cursor}")

    def record(self, actor, operation):
        answer = self.host.json("POST", "/v1/tool-runtime/records", operation, {"x-greenroom-actor": actor})
        self.reads.append({"post": "/v1/tool-runtime/records", "actor": actor, "operation": operation, "body": answer})


def read(host, names):
    """Everything that the read API says of what is settled."""
    last = urllib.parse.quote("Deliver 2")
    wait_for("the search index", lambda: bool(host.get(f"/v1/search?q={last}")["items"]))
    reading = Reading(host)
    for name in ("runs", "conversations", "events", "audit", "approvals", "artifacts", "state"):
        reading.list(f"/v1/{name}?limit=200")
        reading.pages(f"/v1/{name}", 7)
    reading.list("/v1/audit?denied=true&limit=200")
    reading.list("/v1/runs?workspace_id=second&limit=200")
    reading.list("/v1/conversations/elsewhere/history?workspace_id=second")
    for run_id in reading.runs:
        reading.one(f"/v1/runs/{run_id}")
        reading.one(f"/v1/runs/{run_id}/story")
        reading.list(f"/v1/runs/{run_id}/results?limit=200")
        reading.list(f"/v1/audit?run_id={run_id}&limit=200")
    conversations = [item["conversation_id"] for item in host.get("/v1/conversations?limit=200")["items"]]
    for conversation in conversations:
        if conversation.startswith(OPEN):
            continue
        history = f"/v1/conversations/{conversation}/history"
        reading.list(f"{history}?limit=200&direction=forward")
        reading.pages(history, 3)
        reading.list(f"/v1/events?conversation_id={conversation}&limit=200")
    for text in SEARCHES:
        text = urllib.parse.quote(text)
        reading.list(f"/v1/search?q={text}&limit=200")
        reading.list(f"/v1/conversations/talk/search?q={text}")
    for name in ("english", "ticket", "unbound", "unplaced"):
        reading.one(f"/v1/events/{names[name]['event']['event_id']}")
    for name in ("allowed", "denied", "wish"):
        reading.one(f"/v1/approvals/{names[name]['approval_id']}")
    artifacts(reading)
    for actor in ("ann", "bob", "eve"):
        for module in ("calendar", "contacts", "memory"):
            reading.record(actor, {"op": "list", "module": module})
        reading.record(actor, {"op": "get", "module": "calendar", "id": names["dinner"]["record_id"]})
    return {"names": names, "reads": reading.reads, "artifacts": reading.bytes}


def artifacts(reading):
    for item in reading.host.get("/v1/artifacts?limit=200")["items"]:
        target = f"/v1/artifacts/{item['artifact_id']}"
        reading.one(f"{target}/metadata")
        status, content = reading.host.ask("GET", target)
        assert status == 200, (target, status)
        reading.bytes.append({"get": target, "sha256": hashlib.sha256(content).hexdigest(), "size": len(content)})
