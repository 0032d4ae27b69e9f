"""Looks for the provider's key inside the sessions of a real harness, and spends a budget from 16 sessions at once.

keys.py PROGRAM MODULES
"""

import json
import os
import pathlib
import sys
import time

from wall_host import CANARY, GOOSE, HERE, Host, agent, brain, descendants, environ

PROGRAM, MODULES = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
SESSIONS = 16


def configuration(host: Host, budget: str = "") -> str:
    priced = brain(host) + "max_output_tokens = 16\nprice = { input = 1000, output = 1000 }\n"
    goose = MODULES / GOOSE
    return priced + agent("goose", goose) + agent("spender", goose) + budget


def memory_has(pid: int, needle: bytes) -> bool:
    """Reads everything that is mapped in a process, from outside its sandbox."""
    try:
        maps = pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            return any(region_has(memory, line, needle) for line in maps)
    except (FileNotFoundError, ProcessLookupError):
        return False


def region_has(memory, line: str, needle: bytes) -> bool:
    place, rights = line.split()[:2]
    if not rights.startswith("r") or line.endswith(("[vvar]", "[vvar_vclock]", "[vsyscall]")):
        return False
    at, end = (int(number, 16) for number in place.split("-"))
    kept = b""
    while at < end:
        try:
            memory.seek(at)
            piece = memory.read(min(1 << 22, end - at))
        except OSError:
            return False
        if not piece:
            return False
        if needle in kept + piece:
            return True
        kept = piece[-len(needle):]
        at += len(piece)
    return False


def files_with(folder: pathlib.Path, needle: bytes) -> list[str]:
    found = []
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink() and needle in path.read_bytes():
            found.append(str(path))
    return found


def keys(host: Host) -> list[str]:
    """Where the key of the provider is found, in the middle of a turn and after it."""
    problems = []
    run_id = host.send("goose", "keys", "RUN touch started; while [ ! -e go ]; do sleep 0.1; done; echo told")
    started = lambda: list((host.data / "harness/goose/workspaces").glob("*/work/started"))  # noqa: E731
    place = host.wait("command of the harness", started)[0].parent
    try:
        tree = [pid for pid in descendants(host.process.pid) if pid != host.process.pid]
        words = {pid: pathlib.Path(f"/proc/{pid}/cmdline").read_bytes() for pid in tree}
        goose = [pid for pid in tree if b"goose\0acp" in words[pid]]
        runners = [pid for pid in tree if b"acp-agent" in words[pid]]
        assert goose and runners, words
        secret = dict(entry.split(b"=", 1) for entry in
                      pathlib.Path(f"/proc/{goose[0]}/environ").read_bytes().split(b"\0") if b"=" in entry)[b"OPENAI_API_KEY"]
        # The scan finds what is there.
        assert memory_has(goose[0], secret), "the scan does not find the secret of the session"
        assert memory_has(host.process.pid, CANARY.encode()), "the scan does not find the key in the host"
        for pid in tree:
            for name, needle in (("key", CANARY.encode()), ("admin token", host.token.encode())):
                if memory_has(pid, needle):
                    problems.append(f"the {name} is in the memory of {pid} {words[pid][:80]!r}")
                if needle in environ(pid):
                    problems.append(f"the {name} is in the environment of {pid}")
    finally:
        (place / "go").touch()
    host.ended(run_id)
    for folder in ("harness", "run", "artifacts"):
        problems += [f"the key is in `{path}`" for path in files_with(host.data / folder, CANARY.encode())]
    transcript = json.dumps([host.results(run_id), host.call("GET", f"/v1/runs/{run_id}"), host.log()])
    if CANARY in transcript or secret.decode() in transcript:
        problems.append("a key is in the log or in the transcript")
    return problems


def cost(run: dict) -> float:
    return float(run["model_calls"]["cost_usd"])


def budget(host: Host) -> list[str]:
    """One message costs one unit; the budget has room for one and a half."""
    probe = host.ended(host.send("goose", "probe", "hello"))
    one = cost(probe)
    assert probe["status"] == "completed" and one > 0, probe
    allowed = one * 1.5
    host.process.terminate()
    host.process.wait(60)
    table = f"[agents.spender.budget]\nday_usd = {allowed:.6f}\n"
    (host.folder / "greenroom.toml").write_text(configuration(host, table))
    host.start()
    runs = [host.send("spender", f"s{number}", "hello") for number in range(SESSIONS)]
    ended = [host.ended(run_id) for run_id in runs]
    spent = sum(cost(run) for run in ended)
    completed = [run for run in ended if run["status"] == "completed"]
    refused = [run for run in ended if run["status"] == "failed"]
    print(f"budget {allowed:.6f}, one message {one:.6f}: {len(completed)} of {SESSIONS} completed, spent {spent:.6f}")
    problems = []
    if spent > allowed:
        problems.append(f"spent {spent} of {allowed}")
    if not completed or len(completed) + len(refused) != SESSIONS:
        problems.append(f"{[run['status'] for run in ended]}")
    codes = {run["error"]["code"] for run in refused}
    if not codes:
        problems.append("nothing was refused")
    print(f"refused with {sorted(codes)}")
    return problems


def main() -> int:
    host = Host(PROGRAM, HERE / "wall.toml", configuration)
    begin = time.monotonic()
    try:
        if os.getuid() != 0:
            print("the memory of other users is read as root only: skipped")
            return 0
        host.start()
        problems = keys(host) + budget(host)
        if problems:
            print(host.log()[-4000:])
    finally:
        host.close()
    print("\n".join(problems) or f"no key is inside, and no budget was exceeded ({time.monotonic() - begin:.0f} s)")
    return 1 if problems else 0


sys.exit(main())
