"""What a process reaches by design. Written by hand; `docs/security.md` has the same list, and the suite compares them.

A kind `*` stands for all five kinds.
"""

import re
from pathlib import Path

DOCUMENT = Path(__file__).resolve().parents[3] / "docs/security.md"

WATCH = "A public file that it may read can be watched too; it cannot be changed."
OWN_CODE = "A process may run any code of its own; the wall is around it, not inside."
PUBLIC = "Programs, libraries and names that every user of the machine can read are needed to run at all."
OWN_FOLDER = "A runner or server may write to its `dir`, its own program included: who controls the process controls its folder."
OWN = "Its own files and child processes are its own."
HOST_PORT = "The host's own port is open, so that a process can call back; without a token it answers health checks only."
NETWORK_ON = "`network = true` means every address that this machine reaches, in both directions."
LISTED = "The address is in the list `network`."
NO_BLOCKS = "A sparse file takes no space; blocks that are written count towards the quota."
COUNTERS = "Sizes of the machine that allocators and runtimes read."
LOCKS = "Locks on own files cost the kernel some bytes each and end with the process."

LIST = {
    ("files.etc_passwd", "*"): PUBLIC,
    ("files.system_program", "*"): PUBLIC,
    ("metadata.inotify_passwd", "*"): WATCH,
    ("files.meminfo", "*"): COUNTERS,
    ("paths.file_system_size", "*"): COUNTERS,
    ("kernel.exec_own_file", "*"): OWN_CODE,
    ("kernel.own_memfd_exec", "*"): OWN_CODE,
    ("metadata.own_file", "*"): OWN,
    ("metadata.own_watch", "*"): OWN,
    ("processes.own_child", "*"): OWN,
    ("persistence.own_program", "native"): OWN_FOLDER,
    ("persistence.own_program", "langbot"): OWN_FOLDER,
    ("persistence.own_program", "plugin"): OWN_FOLDER,
    ("persistence.own_program", "mcp"): OWN_FOLDER,
    ("persistence.own_folder", "native"): OWN_FOLDER,
    ("persistence.own_folder", "langbot"): OWN_FOLDER,
    ("persistence.own_folder", "plugin"): OWN_FOLDER,
    ("persistence.own_folder", "mcp"): OWN_FOLDER,
    ("resources.sparse_file", "*"): NO_BLOCKS,
    ("resources.file_locks", "*"): LOCKS,
    ("network.host_port", "native"): HOST_PORT,
    ("network.host_port", "langbot"): HOST_PORT,
    ("network.host_port", "plugin"): HOST_PORT,
    ("network.host_port", "module"): HOST_PORT,
    ("network.host_port", "native-list"): HOST_PORT,
    ("network.tcp_listed", "native-list"): LISTED,
    ("network.tcp_listed", "mcp-list"): LISTED,
}
WITH_NETWORK = ("native-all", "mcp-all", "module-all")
REACHED_WITH_NETWORK = (
    "tcp_loopback", "tcp_listed", "tcp_loopback_alias", "tcp_any_address", "tcp_ipv6", "tcp_mapped", "tcp_own_address",
    "mptcp", "fast_open", "fast_open_connect", "reconnect", "udp", "udp_connected", "udp_ipv6", "udp_lite", "dns_query", "listen",
    "metadata_service", "internet", "internet_udp", "host_port", "netlink_route",
)
LIST.update({(f"network.{name}", kind): NETWORK_ON for name in REACHED_WITH_NETWORK for kind in WITH_NETWORK})


# What a process reaches besides where the machine has no namespaces: the guarantees that fall away.
NAMES = "Without a view a path can be looked at, not opened: names, sizes, times and attributes of hidden files can be seen."
MOUNTS = "Without a view the mounts of the machine are visible."
SOCKET_NAMES = "Without a network namespace the names of the machine's Unix sockets are visible; connecting is refused."
SAME_USER = "A root host that may not mount runs a program in a folder that others cannot use as root without capabilities."
WITHOUT_NAMESPACES = {
    ("paths.stat_size", "*"): NAMES,
    ("paths.exists", "*"): NAMES,
    ("metadata.getxattr", "*"): NAMES,
    ("kernel.listmount", "*"): MOUNTS,
    ("sockets.list", "*"): SOCKET_NAMES,
    ("sockets.list_netlink", "*"): SOCKET_NAMES,
    ("kernel.root_inside", "*"): SAME_USER,
    ("kernel.host_user", "*"): SAME_USER,
}
# And where it has no cgroup: the supervisor measures what it can see.
BUFFERS = "Without a cgroup the buffers of sockets and pipes do not count as memory; the number of open files bounds them."
IN_FLIGHT = "Without a cgroup a nameless file that is only in the buffer of a Unix socket is not counted."
WITHOUT_CGROUP = {
    ("resources.memory_sockets", "*"): BUFFERS,
    ("resources.memory_memfd_passed", "*"): IN_FLIGHT,
}
TABLES = {"by design": LIST, "without namespaces": WITHOUT_NAMESPACES, "without a cgroup": WITHOUT_CGROUP}


def table(entries):
    """The rows of a table in `docs/security.md`."""
    kinds, names = {}, {}
    for (name, kind), why in entries.items():
        kinds.setdefault((name, why), []).append(kind)
    for (name, why), of in kinds.items():
        names.setdefault((tuple(sorted(of)), why), []).append(name)
    quote = lambda words: ", ".join(f"`{word}`" for word in words)  # noqa: E731
    return [f"| {quote(reached)} | {quote(of)} | {why} |" for (of, why), reached in names.items()]


def documented(title):
    """`{(NAME, KIND): REASON}` of the table with this title in the document."""
    text = DOCUMENT.read_text()
    table = text.split(f"<!-- {title}: begin -->")[1].split(f"<!-- {title}: end -->")[0]
    rows = re.findall(r"^\| (`[^|]+) \| (`[^|]+) \| ([^|]+) \|$", table, re.M)
    quoted = re.compile(r"`([^`]+)`")
    return {(name, kind): reason.strip() for names, kinds, reason in rows
            for name in quoted.findall(names) for kind in quoted.findall(kinds)}


def reason(name, kind, tables=("by design",)):
    """Why it is expected, or None."""
    for title in tables:
        entries = TABLES[title]
        if why := entries.get((name, kind)) or (entries.get((name, "*")) if "-" not in kind else None):
            return why
    return None


def disagreements():
    """Lines about entries that only one of both lists has, or with another reason."""
    lines = []
    for title, ours in TABLES.items():
        theirs = documented(title)
        for name, kind in sorted(ours.keys() | theirs.keys()):
            if ours.get((name, kind)) != theirs.get((name, kind)):
                lines.append(f"`{name}` for `{kind}`: {DOCUMENT.name} differs from suite/by_design.py ({title})")
    return lines
