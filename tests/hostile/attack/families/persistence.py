"""Traces that outlive the process: files in shared places, changed programs, homes of others."""

import glob
import os
import site

from reach import append, create
from registry import Refused, escape


def leaves(name, summary, path):
    """A new file; the suite looks for it at the same path outside."""
    @escape(f"persistence.{name}", summary, proof="effect")
    def attack(t):
        return create(path(t), t.label)


FILE = "greenroom-hostile-left"


def left(folder):
    return lambda t: f"{folder(t) if callable(folder) else folder}/{FILE}-{t.run}-{t.kind}"


PLACES = {
    "tmp": ("/tmp", "leave a file in /tmp"),
    "var_tmp": ("/var/tmp", "leave a file in /var/tmp"),
    "dev_shm": ("/dev/shm", "leave a file in shared memory"),
    "run": ("/run", "leave a file in /run"),
    "run_lock": ("/run/lock", "leave a file in /run/lock"),
    "dev": ("/dev", "leave a file in /dev"),
    "dev_mqueue": ("/dev/mqueue", "leave a message queue"),
    "root_folder": ("/", "leave a file in the root folder"),
    "root_home": ("/root", "leave a file in /root"),
    "cron": ("/etc/cron.d", "leave a job for cron"),
    "crontabs": ("/var/spool/cron/crontabs", "leave a table for cron"),
    "profile": ("/etc/profile.d", "leave a script for shells"),
    "systemd": ("/etc/systemd/system", "leave a unit for systemd"),
    "local_bin": ("/usr/local/bin", "leave a program in the search path"),
    "usr_lib": ("/usr/lib", "leave a library"),
    "python_path": ("/usr/lib/python3/dist-packages", "leave a module for Python"),
    "local_python_path": ("/usr/local/lib", "leave a file in /usr/local/lib"),
    "opt": ("/opt", "leave a file in /opt"),
    "srv": ("/srv", "leave a file in /srv"),
    "var_cache": ("/var/cache", "leave a file in /var/cache"),
    "mnt": ("/mnt", "leave a file in /mnt"),
}
for name, (folder, summary) in PLACES.items():
    leaves(name, summary, left(folder))

OWN_PLACES = {
    "operator_home": ("home", "", "leave a file in the operator's home"),
    "operator_units": ("home", "/.config/systemd/user", "leave a unit of the operator"),
    "operator_ssh": ("home", "/.ssh", "leave a file beside the operator's keys"),
    "work_folder": ("work", "", "leave a file beside the configuration"),
    "data_folder": ("data", "", "leave a file in the data folder"),
    "run_folder": ("data", "/run", "leave a file in the folder of private folders"),
    "neighbour": ("victim", "", "leave a file in another runner's folder"),
    "neighbour_cache": ("victim", "/__pycache__", "leave byte code for another runner"),
    "artifacts": ("data", "/artifacts", "leave a file among the artifacts"),
    "runners_data": ("data", "/runners", "leave a file in the kept data of runners"),
}
for name, (base, under, summary) in OWN_PLACES.items():
    leaves(name, summary, left(lambda t, base=base, under=under: getattr(t, base) + under))


def changes(name, summary, shared):
    """Opens for writing what others rely on, and writes nothing."""
    @escape(f"persistence.{name}", summary)
    def attack(t):
        return f"descriptor {os.open(t.shared[shared], os.O_WRONLY | os.O_APPEND)}"


changes("bashrc", "change the operator's .bashrc", "bashrc")
changes("authorized_keys", "change the operator's authorized_keys", "authorized_keys")
changes("binary", "change the host's program", "binary")
changes("interpreter", "change the interpreter", "interpreter")
changes("neighbour_script", "change another runner's script", "neighbour_script")
changes("config", "change the configuration", "config")
changes("passwd", "change the users of the machine", "passwd")


@escape("persistence.site_packages", "leave a module in the interpreter's packages", proof="effect")
def site_packages(t):
    for folder in [*site.getsitepackages(), os.path.dirname(os.__file__)]:
        try:
            return create(f"{folder}/{FILE}-{t.run}-{t.kind}", t.label)
        except OSError as error:
            last = error
    raise last


@escape("persistence.byte_code", "replace byte code of the standard library")
def byte_code(t):
    for path in glob.glob(f"{os.path.dirname(os.__file__)}/__pycache__/o*"):
        return f"descriptor {os.open(path, os.O_WRONLY | os.O_APPEND)}"
    raise Refused("there is none")


@escape("persistence.own_program", "replace the own program")
def own_program(t):
    path = f"{t.own_dir}/replaceable.py"
    return append(path, "# changed\n")


@escape("persistence.own_folder", "leave a file in the own folder")
def own_folder(t):
    return create(f"{t.own_dir}/left-by-{t.kind}", t.label)


@escape("persistence.other_home", "leave a file in the kept HOME of another tool server", proof="effect")
def other_home(t):
    return create(f"{t.data}/tools/other/{FILE}-{t.run}-{t.kind}", t.label)
