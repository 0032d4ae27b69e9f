"""Tries to escape from a session of a real harness, whose scripted model runs what a message asks for.

escapes.py PROGRAM MODULES [NAME...]
"""

import base64
import ctypes
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import time

from wall_host import CANARY, GOOSE, HERE, Host, agent, alive, brain, descendants, environ

PROGRAM, MODULES, CHOSEN = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), sys.argv[3:]
ATTACK, VICTIM, ANSWERER = "attacker", "victim", "goose"


def configuration(host: Host) -> str:
    goose = MODULES / GOOSE
    source = host.folder / "source"
    return (brain(host) + agent("goose", goose) + agent("other", goose)
            + agent("gitter", goose, f'workspace = "git", repository = "{source}"'))


def repository(folder: pathlib.Path) -> None:
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    for words in (["init", "-q", "-b", "main"], ["add", "."],
                  ["-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "first"]):
        subprocess.run(["git", *words], cwd=folder, check=True)


def command(script: str) -> str:
    """A message that makes the model run a shell script."""
    return f"RUN echo {base64.b64encode(script.encode()).decode()} | base64 -d | sh"


class Scene:
    def __init__(self) -> None:
        self.host = Host(PROGRAM, HERE / "wall.toml", configuration)
        repository(self.host.folder / "source")
        self.host.start()
        self.failed: list[str] = []

    def check(self, name: str, is_well: bool, evidence: object = "") -> None:
        if CHOSEN and not name.startswith(tuple(CHOSEN)):
            return
        print(f"{'ok' if is_well else 'FAILED':7} {name} {'' if is_well else evidence}", flush=True)
        if not is_well:
            self.failed.append(name)

    def put(self, runner: str, conversation: str, name: str) -> None:
        """A program of the test, written by the harness itself."""
        text = (HERE / name).read_bytes()
        packed = base64.b64encode(text).decode()
        self.host.say(runner, conversation, f"RUN echo {packed} | base64 -d > {name}")

    def prepare(self) -> None:
        host = self.host
        host.say(ANSWERER, VICTIM, command("echo victim-secret > secret.txt"))
        host.say(ANSWERER, ATTACK, command("echo own > own.txt"))
        host.say("other", VICTIM, command("echo other-secret > secret.txt"))
        self.put(ANSWERER, VICTIM, "victim.py")
        self.put(ANSWERER, ATTACK, "attack.py")
        host.say(ANSWERER, VICTIM, command("VICTIM=victim-marker setsid python3 victim.py </dev/null >/dev/null 2>&1 &"))
        self.victim, self.attacker = host.root("goose", VICTIM), host.root("goose", ATTACK)
        host.wait("ports of the victim", (self.victim / "work/ports").exists)
        self.bystanders()
        (self.attacker / "work/targets.json").write_text(json.dumps(self.targets()))

    def bystanders(self) -> None:
        """Sockets of the machine that no session may reach."""
        self.machine = [socket.create_server(("0.0.0.0", 0)), socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)]
        self.machine_socket = str(self.host.folder / "machine.sock")
        self.machine[1].bind(self.machine_socket)
        self.machine[2].bind("\0machine-abstract")
        for listener in self.machine[1:]:
            listener.listen()

    def targets(self) -> dict:
        host = self.host
        tcp, udp = (self.victim / "work/ports").read_text().split()
        tree = [pid for pid in descendants(host.process.pid) if pid != host.process.pid]
        marked = [pid for pid in tree if b"victim-marker" in environ(pid)]
        goose = [pid for pid in tree if b"OPENAI_HOST=" in environ(pid) and self.victim.name.encode() in environ(pid)]
        of_victim = dict(entry.split(b"=", 1) for entry in environ(goose[0]).split(b"\0") if b"=" in entry)
        runner = [pid for pid in tree if b"acp-agent" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()]
        names = lambda pid: pathlib.Path(f"/proc/{pid}/cmdline").read_text()  # noqa: E731
        runner = [pid for pid in runner if '"name":"goose"' in names(pid)]
        private = dict(entry.split(b"=", 1) for entry in environ(runner[0]).split(b"\0") if b"=" in entry)
        self.victim_pid, self.runner_pid = marked[0], runner[0]
        address = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        address.connect(("192.0.2.1", 9))
        run = host.call("GET", "/v1/runs?limit=1")["items"][0]["run_id"]
        return {
            "victim_file": str(self.victim / "work/secret.txt"), "victim_work": str(self.victim / "work"),
            "victim_home": str(self.victim / "home"), "victim_id": self.victim.name,
            "workspaces": str(self.victim.parent), "runner_folder": str(self.victim.parent.parent),
            "other_runner_work": str(host.root("other", VICTIM) / "work"), "operator_home": str(pathlib.Path.home()),
            "admin_token": str(host.data / "admin-token"), "configuration": str(host.folder / "greenroom.toml"),
            "key": str(host.folder / "key"), "data": str(host.data), "machine_tmp": str(host.folder / "log"),
            "runner_private": private[b"TMPDIR"].decode(), "victim_pid": self.victim_pid, "runner_pid": self.runner_pid,
            "host_pid": host.process.pid, "machine_socket": self.machine_socket,
            "victim_port": int(tcp), "victim_udp": int(udp), "machine_port": self.machine[0].getsockname()[1],
            "machine_address": address.getsockname()[0], "model_port": int(host.model.rpartition(":")[2]),
            "victim_gateway": of_victim[b"OPENAI_HOST"].decode(), "victim_secret": of_victim[b"OPENAI_API_KEY"].decode(),
            "victim_run": run, "host_url": host.url, "source": str(host.folder / "source"),
        }

    def attempts(self) -> None:
        names = re.findall(r'^        "([a-z_]+\.[a-z_]+)": \(', (HERE / "attack.py").read_text(), re.M)
        for name in names:
            if CHOSEN and not name.startswith(tuple(CHOSEN)):
                continue
            said = self.host.say(ANSWERER, ATTACK, f"RUN python3 attack.py {name}")
            control = re.search(r"^control (.*)$", said, re.M)
            attack = re.search(r"^attack (.*)$", said, re.M)
            is_well = bool(control and attack) and control[1] == "0" and attack[1] != "0"
            self.check(name, is_well, said)
        self.check("after.victim_lives", alive(self.victim_pid) and alive(self.runner_pid))
        self.check("after.victim_file", (self.victim / "work/secret.txt").read_text() == "victim-secret\n")
        mode = (self.victim / "work/secret.txt").stat().st_mode & 0o777
        self.check("after.victim_mode", mode != 0o777, oct(mode))

    def files_of_the_host(self) -> None:
        """What the host's runner writes and reads in a workspace."""
        host, victim = self.host, self.victim / "work"
        before = (victim / ".greenroom/agent-context.json").read_text()
        context = self.attacker / "work/.greenroom/agent-context.json"
        host.say(ANSWERER, ATTACK, command(f"rm .greenroom/agent-context.json; ln -s {victim}/secret.txt .greenroom/agent-context.json"))
        host.say(ANSWERER, ATTACK, "hello")
        self.check("deputy.context_link", (victim / "secret.txt").read_text() == "victim-secret\n" and not context.is_symlink())
        host.say(ANSWERER, ATTACK, command(f"rm -r .greenroom; ln -s {victim}/.greenroom .greenroom"))
        host.say(ANSWERER, ATTACK, "hello")
        self.check("deputy.folder_link", (victim / ".greenroom/agent-context.json").read_text() == before
                   and (self.attacker / "work/.greenroom/agent-context.json").exists())
        host.say(ANSWERER, ATTACK, command(f"rm -rf .greenroom/files; ln -s {victim} .greenroom/files"))
        attachment = {"type": "file", "data_base64": base64.b64encode(b"planted").decode(), "mime_type": "text/plain", "name": "planted.txt"}
        run_id = host.call("POST", "/v1/events", {
            "event_type": "message.received", "agent": ANSWERER, "conversation_id": ATTACK,
            "actor": {"actor_type": "user", "actor_id": "u1"},
            "input": {"text": "a file", "contents": [{"type": "text", "text": "a file"}, attachment]}})["run_id"]
        host.ended(run_id)
        self.check("deputy.files_link", not (victim / "planted.txt").exists())

    def git(self) -> None:
        """Settings of a repository that name programs, which the host's own git must not run outside."""
        host = self.host
        first = host.send("gitter", ATTACK, command("echo two > a.txt; git status --short"))
        run = host.ended(first)
        assert run["status"] == "completed", (run, host.log()[-3000:])
        self.check("git.works", "M a.txt" in host.text(first), host.text(first))
        root = host.root("gitter", ATTACK)
        stolen = f"cat {host.data}/admin-token {self.victim}/work/secret.txt > {root}/work/stolen 2>/dev/null; " \
                 f"touch {root}/escaped {root.parent}/escaped {host.folder}/source/escaped 2>/dev/null; touch {root}/work/ran; cat"
        script = (f"git config filter.x.clean '{stolen}'; git config core.fsmonitor '{stolen}'; git config diff.external '{stolen}'\n"
                  "echo '* filter=x' > .gitattributes; echo three > a.txt; echo b > b.txt\n"
                  f"mkdir -p .git/hooks; printf '#!/bin/sh\\n{stolen}' > .git/hooks/post-index-change; chmod +x .git/hooks/*\n"
                  f"ln -s {host.data}/admin-token token-link\ngit add -A; test -e ran && echo it-ran; rm -f ran")
        run_id = host.send("gitter", ATTACK, command(script))
        host.ended(run_id)
        self.check("git.settings_name_programs", "it-ran" in host.text(run_id), "the attempt shows nothing")
        self.check("git.host_runs_none", not (root / "work/ran").exists())
        found = [str(path) for path in (root / "escaped", root.parent / "escaped", host.folder / "source/escaped") if path.exists()]
        self.check("git.program_contained", not found, found)
        text = (root / "work/stolen").read_text() if (root / "work/stolen").exists() else ""
        self.check("git.program_reads_nothing", text == "", text)
        diff = (root / "changes.diff").read_text() if (root / "changes.diff").exists() else ""
        self.check("git.diff_made_from_a_link", host.token not in diff and "b.txt" in diff, diff[:500])
        run_id = host.send("gitter", ATTACK, command(f"rm -rf .git; ln -s {self.victim}/work .git"))
        host.ended(run_id)
        self.check("git.repository_link", not (self.victim / "work/index").exists())
        self.check("git.source_unchanged", not (host.folder / "source/.git/hooks/post-commit").exists())

    def isolation(self) -> None:
        runners = json.dumps(self.host.call("GET", "/v1/runners"))
        self.check("wall.named", "sessions:view" in runners or "sessions:landlock" in runners, runners[:500])


def main() -> int:
    begin = time.monotonic()
    scene = Scene()
    try:
        scene.prepare()
        scene.isolation()
        scene.attempts()
        scene.files_of_the_host()
        scene.git()
        if scene.failed:
            print(scene.host.log()[-6000:])
    finally:
        scene.host.close()
    print(f"{len(scene.failed)} failed in {time.monotonic() - begin:.0f} s: {', '.join(scene.failed)}" if scene.failed
          else f"no escape from a session succeeds ({time.monotonic() - begin:.0f} s)")
    return 1 if scene.failed else 0


sys.exit(main())
