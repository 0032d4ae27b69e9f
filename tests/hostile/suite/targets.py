"""What an attacker is told: every path, process and address, although most could be found out or guessed."""

import glob
import os

from . import listeners, processes


def describe(trial, kind, files, bystander):
    place, stage, heard = trial.place, trial.stage, trial.listeners
    # A method has no process yet: any program of the host leads to a supervisor.
    attacker = (processes.tagged(stage.tag(kind)) or [trial.victim_pid])[0]
    return {
        "kind": kind.name, "run": place.run, "url": stage.url, "host_port": stage.port,
        **paths(place, kind), **disks(), **quotas(trial.keys.get("quotas", {}), kind),
        "shared": trial.shared.paths, "sockets": heard.names,
        "system_sockets": [path for path in listeners.OTHER_SOCKETS if os.path.exists(path)],
        "host_pid": stage.process.pid, "host_uid": place.uid, "victim_pid": trial.victim_pid,
        "supervisor_pid": processes.supervisor_of(attacker, stage.process.pid), "bystander_pid": bystander.pid,
        "pid_namespace": os.readlink("/proc/self/ns/pid"), "net_namespace": os.readlink("/proc/self/ns/net"),
        "mount_namespace": os.readlink("/proc/self/ns/mnt"),
        "canary_inode": files.any_inode(), "host_keys": glob.glob("/etc/ssh/ssh_host_*_key"),
        "terminals": [path for path in glob.glob("/dev/pts/*") if path != "/dev/pts/ptmx"],
        "tcp_port": heard.tcp_port, "listed_port": heard.listed_port, "udp_port": heard.udp_port,
        "own_address": heard.own_address, "listen_port": listeners.free_port(),
        "memory_mb": kind.memory_mb, "processes": kind.processes,
    }


def paths(place, kind):
    work = place.work
    found = {
        "base": place.base, "work": work, "data": place.data, "home": place.home, "loot": place.loot,
        "config": work / "greenroom.toml", "log": work / "log", "victim": work / "victim", "own_dir": work / kind.name,
        "secret_file": work / "secrets/website-token",
    }
    return {**{name: str(path) for name, path in found.items()}, "shm_name": f"gh-{place.run}"}


def disks():
    devices = sorted(f"/dev/{name}" for name in os.listdir("/sys/block") if os.path.exists(f"/dev/{name}"))
    numbers = [os.stat(path).st_rdev for path in devices[:1]]
    return {"disks": devices, "disk_numbers": [[os.major(n), os.minor(n)] for n in numbers][0] if numbers else None}


def quotas(configured, kind):
    """The quotas of every runner and server, and how much more is tried. Those of a method are fixed."""
    return {"disk_mb": configured.get("disk_mb", 64), "files_max": configured.get("files", 2000), "disk_tried_mb": 160,
            "files_tried": 4_000, "threads_tried": 2000 if kind.asked_as == "method" else 400}
