"""Runs inside a session: each escape is tried first where it is allowed, then where it is not.

attack.py NAME JSON   The JSON has the targets; prints `control CODE` and `attack CODE`, where 0 is a success.
"""

import ctypes
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request

LIBC = ctypes.CDLL(None, use_errno=True)


def call(number: int, *arguments: object) -> None:
    if LIBC.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "refused")


def read(path):
    assert pathlib.Path(path).read_bytes(), "empty"


def write(path):
    with open(path, "ab") as file:
        file.write(b"x")


def listed(path):
    assert os.listdir(path), "empty"


def link_read(path):
    pathlib.Path("escape-link").unlink(missing_ok=True)
    os.symlink(path, "escape-link")
    read("escape-link")


def hard_link(path):
    pathlib.Path("escape-hard").unlink(missing_ok=True)
    os.link(path, "escape-hard")


def moved(path):
    os.rename(path, path + ".moved")
    os.rename(path + ".moved", path)


def watched(path):
    watch = LIBC.inotify_init1(0)
    assert LIBC.inotify_add_watch(watch, str(path).encode(), 0xFFF) >= 0, "refused"


def seen_by_any(what, marker):
    """Whether the file of any process in /proc has the marker."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if marker.encode() in pathlib.Path(f"/proc/{pid}/{what}").read_bytes():
                return
        except OSError:
            continue
    raise AssertionError("not seen")


def memory(pid, _=None):
    place = pathlib.Path(f"/proc/{pid}/maps").read_text().split("\n")[0].split("-")[0]
    with open(f"/proc/{pid}/mem", "rb") as file:
        file.seek(int(place, 16))
        assert file.read(16), "empty"


def through_root(pid, path):
    read(f"/proc/{pid}/root{path}")


def traced(pid):
    call(101, 16, pid, 0, 0)  # PTRACE_ATTACH
    os.waitpid(pid, 0)
    call(101, 17, pid, 0, 0)


def killed(pid):
    os.kill(pid, signal.SIGURG)


def reprioritised(pid):
    os.setpriority(os.PRIO_PROCESS, pid, 19)


def unix(path):
    with socket.socket(socket.AF_UNIX) as one:
        one.settimeout(3)
        one.connect(path)


def tcp(host, port):
    socket.create_connection((host, port), 3).close()


def udp(port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.settimeout(3)
        one.connect(("127.0.0.1", port))
        one.send(b"?")
        assert one.recv(10), "no answer"


def mcp(url, secret):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}).encode()
    headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json",
               "Accept": "application/json, text/event-stream"}
    with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=5) as answer:
        assert answer.status == 200 and b"tools" in answer.read(), "no tools"


def program(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Own:
    """Things of this session, for the controls."""

    def __init__(self) -> None:
        self.file = str(pathlib.Path("own-file").resolve())
        pathlib.Path(self.file).write_text("own")
        self.child = subprocess.Popen(["sleep", "60"], env={**os.environ, "OWN_MARKER": "own-marker"})
        # It exists before its arguments do.
        while b"sleep" not in pathlib.Path(f"/proc/{self.child.pid}/cmdline").read_bytes():
            os.sched_yield()

    def unix(self, name: str) -> str:
        self.listener = socket.socket(socket.AF_UNIX)
        if not name.startswith("\0"):
            pathlib.Path(name).unlink(missing_ok=True)
        self.listener.bind(name)
        self.listener.listen()
        return name

    def tcp(self) -> int:
        self.listener = socket.create_server(("127.0.0.1", 0))
        return self.listener.getsockname()[1]

    def udp(self) -> int:
        self.listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.listener.bind(("127.0.0.1", 0))
        port = self.listener.getsockname()[1]
        if os.fork() == 0:
            data, peer = self.listener.recvfrom(10)
            self.listener.sendto(data, peer)
            os._exit(0)
        return port


def gateway() -> tuple[str, str]:
    return os.environ["OPENAI_HOST"], os.environ["OPENAI_API_KEY"]


# Name: (control, attack); T are the targets.
def escapes(T, own):
    base, secret = gateway()
    work = os.getcwd()
    victim, vwork, vhome = T["victim_file"], T["victim_work"], T["victim_home"]
    return {
        "file.read": (lambda: read(own.file), lambda: read(victim)),
        "file.write": (lambda: write(own.file), lambda: write(victim)),
        "file.create": (lambda: write("new"), lambda: write(vwork + "/new")),
        "file.list": (lambda: listed(work), lambda: listed(vwork)),
        "file.list_all": (lambda: listed(work), lambda: [os.stat(f"{T['workspaces']}/{T['victim_id']}/work")]),
        "file.stat": (lambda: os.stat(own.file), lambda: os.stat(victim)),
        "file.chmod": (lambda: os.chmod(own.file, 0o644), lambda: os.chmod(victim, 0o777)),
        "file.utime": (lambda: os.utime(own.file), lambda: os.utime(victim)),
        "file.watch": (lambda: watched(work), lambda: watched(vwork)),
        "file.symlink": (lambda: link_read(own.file), lambda: link_read(victim)),
        "file.symlink_relative": (lambda: link_read("own-file"),
                                  lambda: link_read(os.path.relpath(victim, work))),
        "file.hard_link": (lambda: hard_link(own.file), lambda: hard_link(victim)),
        "file.rename": (lambda: moved(own.file), lambda: moved(vwork)),
        "file.own_record": (lambda: write(own.file), lambda: write(os.path.dirname(work) + "/workspace.json")),
        "file.replace_own_work": (lambda: moved(own.file), lambda: moved(work)),
        "file.runner_folder": (lambda: write(own.file), lambda: write(T["runner_folder"] + "/new")),
        "file.other_home": (lambda: listed(os.environ["HOME"]), lambda: listed(vhome)),
        "file.other_runner": (lambda: listed(work), lambda: listed(T["other_runner_work"])),
        "file.operator_home": (lambda: listed(os.environ["HOME"]), lambda: listed(T["operator_home"])),
        "file.admin_token": (lambda: read(own.file), lambda: read(T["admin_token"])),
        "file.configuration": (lambda: read(own.file), lambda: read(T["configuration"])),
        "file.model_key": (lambda: read(own.file), lambda: read(T["key"])),
        "file.data_folder": (lambda: listed(work), lambda: listed(T["data"])),
        "file.machine_tmp": (lambda: write(os.environ["TMPDIR"] + "/x"), lambda: read(T["machine_tmp"])),
        "file.runner_tmp": (lambda: write("/tmp/x") if os.access("/tmp", os.W_OK) else write(os.environ["TMPDIR"] + "/x"),
                            lambda: listed(T["runner_private"])),
        "proc.environ": (lambda: seen_by_any("environ", "own-marker"), lambda: seen_by_any("environ", "victim-marker")),
        "proc.command": (lambda: seen_by_any("cmdline", "sleep"), lambda: seen_by_any("cmdline", "acp-agent")),
        "proc.maps": (lambda: read(f"/proc/{own.child.pid}/maps"), lambda: read(f"/proc/{T['victim_pid']}/maps")),
        "proc.memory": (lambda: memory(os.getpid()), lambda: memory(T["victim_pid"])),
        "proc.runner_memory": (lambda: memory(os.getpid()), lambda: memory(T["runner_pid"])),
        "proc.descriptors": (lambda: listed(f"/proc/{own.child.pid}/fd"), lambda: listed(f"/proc/{T['runner_pid']}/fd")),
        "proc.cwd": (lambda: listed(f"/proc/{own.child.pid}/cwd"), lambda: listed(f"/proc/{T['victim_pid']}/cwd")),
        "proc.root": (lambda: through_root("self", own.file), lambda: through_root(T["victim_pid"], victim)),
        "proc.first_root": (lambda: through_root("self", own.file), lambda: through_root(1, victim)),
        "proc.first_environ": (lambda: seen_by_any("environ", "own-marker"), lambda: read("/proc/1/environ")),
        "proc.trace": (lambda: read(f"/proc/{own.child.pid}/status"), lambda: traced(T["victim_pid"])),
        "signal.victim": (lambda: killed(own.child.pid), lambda: killed(T["victim_pid"])),
        "signal.runner": (lambda: killed(own.child.pid), lambda: killed(T["runner_pid"])),
        "signal.host": (lambda: killed(own.child.pid), lambda: killed(T["host_pid"])),
        "signal.priority": (lambda: os.setpriority(os.PRIO_PROCESS, 0, 1), lambda: reprioritised(T["victim_pid"])),
        "socket.path": (lambda: unix(own.unix("own.sock")), lambda: unix(vwork + "/victim.sock")),
        "socket.machine_path": (lambda: unix(own.unix("own.sock")), lambda: unix(T["machine_socket"])),
        "socket.abstract": (lambda: unix(own.unix("\0own-abstract")), lambda: unix("\0victim-abstract")),
        "socket.machine_abstract": (lambda: unix(own.unix("\0own-abstract")), lambda: unix("\0machine-abstract")),
        "socket.tcp_victim": (lambda: tcp("127.0.0.1", own.tcp()), lambda: tcp("127.0.0.1", T["victim_port"])),
        "socket.udp_victim": (lambda: udp(own.udp()), lambda: udp(T["victim_udp"])),
        "socket.tcp_machine": (lambda: tcp("127.0.0.1", own.tcp()), lambda: tcp("127.0.0.1", T["machine_port"])),
        "socket.tcp_machine_address": (lambda: tcp("127.0.0.1", own.tcp()), lambda: tcp(T["machine_address"], T["machine_port"])),
        "socket.model_server": (lambda: tcp("127.0.0.1", own.tcp()), lambda: tcp("127.0.0.1", T["model_port"])),
        "gateway.victim": (lambda: mcp(base + "/mcp", secret), lambda: mcp(T["victim_gateway"] + "/mcp", T["victim_secret"])),
        "gateway.other_run": (lambda: mcp(base + "/mcp", secret), lambda: mcp(f"{base}/mcp/runs/{T['victim_run']}", secret)),
        "gateway.steps": (lambda: mcp(base + "/mcp", secret), lambda: mcp(f"{base}/v1/../../../../mcp/runs/{T['victim_run']}", secret)),
        "gateway.without_secret": (lambda: mcp(base + "/mcp", secret), lambda: mcp(base + "/mcp", "grs_" + "0" * 48)),
        "gateway.host_directly": (lambda: mcp(base + "/mcp", secret), lambda: mcp(f"{T['host_url']}/mcp/runs/{T['victim_run']}", secret)),
        "gateway.host_api": (lambda: mcp(base + "/mcp", secret), lambda: urllib.request.urlopen(
            urllib.request.Request(base + "/v1/runs", headers={"Authorization": f"Bearer {secret}"}), timeout=5)),
        "kernel.namespace": (lambda: program("true"), lambda: program("unshare", "-r", "true")),
        "kernel.uncover": (lambda: program("true"), lambda: call(166, T["workspaces"].encode(), 2)),
        "kernel.mount": (lambda: program("true"), lambda: call(165, b"none", b"/tmp", b"tmpfs", 0, None)),
        "kernel.enter": (lambda: os.open("/proc/self/ns/mnt", os.O_RDONLY),
                         lambda: call(308, os.open("/proc/self/ns/user", os.O_RDONLY), 0)),
        "kernel.chroot": (lambda: program("true"), lambda: os.chroot("/usr")),
        "repository.source": (lambda: write("new"), lambda: write(T["source"] + "/.git/hooks/post-commit")),
    }


def outcome(attempt) -> str:
    try:
        attempt()
        return "0"
    except (OSError, AssertionError, ValueError, urllib.error.URLError, subprocess.SubprocessError) as error:
        return f"1 {type(error).__name__} {str(error)[:120]}"


def main() -> None:
    name, targets = sys.argv[1], json.loads(pathlib.Path("targets.json").read_text())
    own = Own()
    try:
        control, attack = escapes(targets, own)[name]
        print("control", outcome(control))
        print("attack", outcome(attack))
    finally:
        own.child.kill()
        shutil.rmtree("escape-link", ignore_errors=True)


if __name__ == "__main__":
    main()
