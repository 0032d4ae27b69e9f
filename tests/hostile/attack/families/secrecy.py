"""Secrets: what the process was given without need, and what it can do with what it was given."""

import json
import os
import urllib.error
import urllib.request

from reach import read
from registry import Absent, Refused, escape


def request(method, url, token=None, body=None, headers=()):
    sent = {"content-type": "application/json", **dict(headers)}
    if token:
        sent["authorization"] = f"Bearer {token}"
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(url, data, sent, method=method)
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(asked, timeout=2) as answer:
            return f"{answer.status}: {answer.read(200)!r}"
    except urllib.error.HTTPError as error:
        raise Refused(f"status {error.code}")


# Those that only dump what they see are decided by the suite, which looks for its secrets in the evidence.
@escape("secrets.environment", "find a secret of the host in the own environment", proof="effect", inline=True)
def environment(t):
    return {name: value for name, value in os.environ.items() if name != "PATH"}


@escape("secrets.own_arguments", "find a secret in the own arguments", proof="effect", inline=True)
def own_arguments(t):
    return read("/proc/self/cmdline")


@escape("secrets.initial_environment", "find a secret in the initial environment", proof="effect")
def initial_environment(t):
    return read(f"/proc/{os.getppid()}/environ")


@escape("secrets.own_memory", "find a secret of the host in the own memory", proof="effect", inline=True)
def own_memory(t):
    for line in read("/proc/self/maps", 1 << 20).splitlines():
        if "[stack]" in line:
            start, end = (int(word, 16) for word in line.split()[0].split("-"))
            with open("/proc/self/mem", "rb", buffering=0) as memory:
                memory.seek(start)
                stack = memory.read(end - start)
                return "HOSTILE_HOST_SECRET" if b"HOSTILE_HOST_SECRET" in stack else refuse("not in the stack")
    raise Refused("no stack")


def refuse(why):
    raise Refused(why)


@escape("secrets.standard_streams", "find a file behind a standard stream", proof="effect", inline=True)
def standard_streams(t):
    return [os.readlink(f"/proc/self/fd/{number}") for number in (0, 1, 2)]


@escape("secrets.standard_error_read", "read what was written to the log", inline=True)
def standard_error_read(t):
    descriptor = os.open("/proc/self/fd/2", os.O_RDONLY | os.O_NONBLOCK)
    text = os.read(descriptor, 4096)
    if not text:
        raise Refused("empty")
    return text


@escape("secrets.api_without_token", "read runs from the host's API without a token")
def api_without_token(t):
    return request("GET", f"{t.url}/v1/runs")


@escape("secrets.metrics_without_token", "read the host's metrics without a token")
def metrics_without_token(t):
    return request("GET", f"{t.url}/metrics")


@escape("secrets.events_without_token", "send an event without a token")
def events_without_token(t):
    return request("POST", f"{t.url}/v1/events", body={"event_type": "message.received", "input": {"text": "x"}})


@escape("secrets.records_without_token", "read records without a credential")
def records_without_token(t):
    return request("POST", f"{t.url}/v1/tool-runtime/records", body={"op": "list", "module": "contacts"},
                   headers={"x-greenroom-actor": "ann"}.items())


@escape("secrets.runner_connection", "connect as a remote runner without its token")
def runner_connection(t):
    return request("GET", f"{t.url}/v1/runners/connect", token="guess")


@escape("secrets.trusted_header", "pretend to be a proxy")
def trusted_header(t):
    return request("GET", f"{t.url}/v1/runs", headers={"x-forwarded-for": "127.0.0.1", "x-forwarded-user": "admin"}.items())


def credential():
    if "GREENROOM_CREDENTIAL" not in os.environ:
        raise Absent("only a method has a credential")
    return os.environ["GREENROOM_CREDENTIAL"]


def misuses(name, summary, method, path, body=None, headers=()):
    @escape(f"secrets.credential_{name}", summary, kinds=("module",))
    def attack(t):
        return request(method, t.url + path, credential(), body, headers)


misuses("runs", "read runs with the credential of a call", "GET", "/v1/runs")
misuses("event", "send an event with the credential of a call", "POST", "/v1/events",
        {"event_type": "message.received", "input": {"text": "x"}})
misuses("approvals", "read approvals with the credential of a call", "GET", "/v1/approvals")
misuses("audit", "read the audit records with the credential of a call", "GET", "/v1/audit")
misuses("other_module", "read records of another module", "POST", "/v1/tool-runtime/records",
        {"op": "list", "module": "contacts"})
misuses("other_actor", "read records of another actor", "POST", "/v1/tool-runtime/records",
        {"op": "list", "module": "contacts"}, (("x-greenroom-actor", "bob"),))
misuses("metrics", "read metrics with the credential of a call", "GET", "/metrics")


@escape("secrets.credential_later", "use the credential after the call has ended", kinds=("module",), proof="effect")
def credential_later(t):
    # The suite tries it from outside, once the call is over.
    return f"credential={credential()}"
