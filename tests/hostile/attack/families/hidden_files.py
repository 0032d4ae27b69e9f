"""Files that are not the process's own: of the host, of other runners, of the operator and of the system."""

import glob
import os

from reach import listing, read
from registry import Absent, Refused, escape


def reads(name, summary, path):
    @escape(f"files.{name}", summary)
    def attack(t):
        return read(path(t))


def lists(name, summary, path, having=lambda t: None):
    @escape(f"files.{name}", summary)
    def attack(t):
        return listing(path(t), having(t))


reads("admin_token", "read the admin token", lambda t: f"{t.data}/admin-token")
reads("database", "read the database", lambda t: f"{t.data}/greenroom.db")
reads("database_log", "read the database's write-ahead log", lambda t: f"{t.data}/greenroom.db-wal")
reads("host_json", "read the host's address and process id", lambda t: f"{t.data}/host.json")
reads("config", "read the configuration", lambda t: t.config)
reads("secret_file", "read a secret file that the configuration names", lambda t: t.secret_file)
reads("canary", "read a file in the data folder", lambda t: t.canary)
reads("host_log", "read the host's log", lambda t: t.log)
reads("neighbour_script", "read another runner's script", lambda t: f"{t.victim}/victim.py")
reads("neighbour_file", "read a file in another runner's folder", lambda t: t.neighbour)
reads("module_manifest_of_other", "read another module's manifest", lambda t: f"{t.work}/other-module/module.toml")
reads("ssh_key", "read the operator's SSH key", lambda t: f"{t.home}/.ssh/id_ed25519")
reads("shell_history", "read the operator's shell history", lambda t: f"{t.home}/.bash_history")
reads("etc_shadow", "read the password hashes", lambda t: "/etc/shadow")
reads("etc_gshadow", "read the group passwords", lambda t: "/etc/gshadow")
reads("etc_sudoers", "read who may become root", lambda t: "/etc/sudoers")
reads("etc_machine_id", "read the machine's id", lambda t: "/etc/machine-id")
reads("etc_passwd", "read the user names of the machine", lambda t: "/etc/passwd")
reads("meminfo", "read how much memory the machine has", lambda t: "/proc/meminfo")
reads("system_program", "read an installed program", lambda t: "/usr/bin/env")
reads("kernel_symbols", "read the kernel's addresses", lambda t: "/proc/kallsyms")
reads("kernel_command_line", "read the kernel's command line", lambda t: "/proc/cmdline")
reads("kernel_config", "read the kernel's configuration", lambda t: "/proc/config.gz")
reads("kernel_keys", "read the list of keys", lambda t: "/proc/keys")
reads("mounts_of_init", "read the mounts of process 1", lambda t: "/proc/1/mountinfo")
reads("environ_of_init", "read the environment of process 1", lambda t: "/proc/1/environ")
reads("tcp_connections", "read the machine's TCP connections", lambda t: "/proc/1/net/tcp")
reads("interrupts", "read the interrupt counters", lambda t: "/proc/interrupts")
reads("slab", "read the kernel's allocations", lambda t: "/proc/slabinfo")
reads("timers", "read the kernel's timers", lambda t: "/proc/timer_list")
reads("locks", "read the machine's file locks", lambda t: "/proc/locks")

lists("data_folder", "list the data folder", lambda t: t.data, lambda t: "admin-token")
lists("run_folder", "list the private folders of other processes", lambda t: f"{t.data}/run")
lists("neighbour_folder", "list another runner's folder", lambda t: t.victim, lambda t: "victim.py")
lists("work_folder", "list the folder of the configuration", lambda t: t.work, lambda t: "secrets")
lists("operator_home", "list the operator's home", lambda t: t.home, lambda t: ".ssh")
lists("root_home", "list /root", lambda t: "/root")
lists("homes", "list /home", lambda t: "/home")
lists("tmp", "list the machine's /tmp", lambda t: "/tmp", lambda t: os.path.basename(t.base))
lists("var_tmp", "list /var/tmp", lambda t: "/var/tmp")
lists("var_log", "list /var/log", lambda t: "/var/log")
lists("var_lib", "list /var/lib", lambda t: "/var/lib")
lists("run", "list /run", lambda t: "/run")
lists("etc", "list /etc", lambda t: "/etc", lambda t: "shadow")
lists("dev", "list /dev of the machine", lambda t: "/dev", lambda t: "mem")
lists("dev_shm", "list the machine's shared memory", lambda t: "/dev/shm", lambda t: t.shm_name)
lists("processes", "list the processes of the machine", lambda t: "/proc", lambda t: str(t.host_pid))


@escape("files.ssh_host_key", "read the machine's SSH keys")
def ssh_host_key(t):
    keys = t.host_keys
    if not keys:
        raise Absent("no SSH server is installed")
    return read(keys[0])


@escape("files.other_tools_home", "read the kept HOME of another tool server")
def other_tools_home(t):
    homes = [path for path in glob.glob(f"{t.data}/tools/*") if t.kind not in path]
    if not homes:
        raise Refused("none is visible")
    return listing(homes[0])


def of_process(role, pid):
    """What `/proc` shows of another process."""
    for name in ("environ", "maps", "auxv", "stack", "syscall", "io", "cmdline", "mountinfo", "smaps_rollup"):
        @escape(f"files.proc_{role}_{name}", f"read /proc/PID/{name} of {role}")
        def attack(t, name=name):
            return read(f"/proc/{pid(t)}/{name}")

    @escape(f"files.proc_{role}_mem", f"read the memory of {role} through /proc")
    def mem(t):
        with open(f"/proc/{pid(t)}/mem", "rb", buffering=0) as file:
            return f"opened: {file.fileno()}"

    for name in ("fd", "task", "map_files", "ns", "fdinfo"):
        @escape(f"files.proc_{role}_{name}", f"list /proc/PID/{name} of {role}")
        def attack_list(t, name=name):
            return listing(f"/proc/{pid(t)}/{name}")

    @escape(f"files.proc_{role}_root", f"read a hidden file through /proc/PID/root of {role}")
    def root(t):
        return read(f"/proc/{pid(t)}/root{t.canary}")

    @escape(f"files.proc_{role}_cwd", f"list the working folder of {role}")
    def cwd(t):
        return listing(f"/proc/{pid(t)}/cwd/")

    @escape(f"files.proc_{role}_exe", f"learn the program of {role}")
    def exe(t):
        return os.readlink(f"/proc/{pid(t)}/exe")

    @escape(f"files.proc_{role}_fd_open", f"open a descriptor of {role}")
    def fd_open(t):
        for number in range(3, 40):
            try:
                with open(f"/proc/{pid(t)}/fd/{number}", "rb") as file:
                    return f"opened {number}: {file.fileno()}"
            except OSError as error:
                last = error
        raise last

    @escape(f"files.proc_{role}_oom", f"change the OOM score of {role}")
    def oom(t):
        with open(f"/proc/{pid(t)}/oom_score_adj", "r+") as file:
            score = file.read()
            file.seek(0)
            file.write(score)
        return f"wrote {score}"


of_process("host", lambda t: t.host_pid)
of_process("supervisor", lambda t: t.supervisor_pid)
of_process("neighbour", lambda t: t.victim_pid)
