"""Files that must not change: one per attempt in two hidden folders, and the objects that all attempts share.

Invariant: a change is seen by `st_ctime`, which no caller can set; contents and names are compared too.
"""

import os
import secrets
from pathlib import Path

LEFT = "greenroom-hostile-left"
# Where `attack/families/persistence.py` tries to leave files.
LEFT_IN = ("/tmp", "/var/tmp", "/dev/shm", "/run", "/run/lock", "/dev", "/dev/mqueue", "/", "/root", "/etc/cron.d",
           "/var/spool/cron/crontabs", "/etc/profile.d", "/etc/systemd/system", "/usr/local/bin", "/usr/lib",
           "/usr/lib/python3/dist-packages", "/usr/local/lib", "/opt", "/srv", "/var/cache", "/mnt")
MARK_NS = 1_000_000_000_000_000_007


class Canaries:
    """The files of every attempt of one kind."""

    def __init__(self, place, kind, escapes):
        self.place, self.kind = place, kind
        self.texts, self.states = {}, {}
        for folder in (place.data, place.work / "victim"):
            place.folder(folder / "canary" / kind.name, 0o700)
            for name in escapes:
                path = folder / "canary" / kind.name / name
                self.texts[path] = f"canary-{secrets.token_hex(12)}"
                place.write(path, self.texts[path], 0o600)
                try:
                    os.setxattr(path, "user.canary", b"1")
                except OSError:
                    pass  # The file system has no attributes.
                self.states[path] = state(path)

    def any_inode(self):
        """The number of a hidden file, for an attacker who guesses."""
        return os.stat(next(iter(self.texts))).st_ino

    def changed(self):
        """`{NAME: what}` for every attempt whose files changed."""
        effects = {}
        for path, before in self.states.items():
            after = state(path)
            if after != before:
                effects[path.name] = f"`{path}` changed: {difference(before, after)}"
            if os.path.lexists(f"{path}.made"):
                effects[path.name] = f"`{path}.made` exists"
        return effects

    def secrets(self):
        return {text: f"the content of {path}" for path, text in self.texts.items()}


def state(path):
    try:
        found = os.lstat(path)
    except OSError as error:
        return {"missing": error.strerror}
    names = ("st_mode", "st_uid", "st_gid", "st_nlink", "st_size", "st_mtime_ns", "st_ctime_ns", "st_ino")
    return {name: getattr(found, name) for name in names}


def difference(before, after):
    return ", ".join(f"{name} {before.get(name)} → {after[name]}" for name in after if after[name] != before.get(name))


def shared_objects(place):
    """What several escapes change: name and path."""
    objects = {
        "data": place.data, "config": place.work / "greenroom.toml", "neighbour_script": place.work / "victim/victim.py",
        "null": "/dev/null", "zero": "/dev/zero", "binary": place.binary, "interpreter": place.python,
        "passwd": "/etc/passwd", "operator_home": place.home, "base": place.base, "work": place.work,
        "shared_memory": f"/dev/shm/gh-{place.run}", "bashrc": place.home / ".bashrc",
        "authorized_keys": place.home / ".ssh/authorized_keys",
    }
    return {name: str(path) for name, path in objects.items()}


class SharedObjects:
    """Compared before and after the attempts of one kind; `data` also changes by the host's own work."""

    def __init__(self, place):
        self.paths = shared_objects(place)
        self.place = place
        place.write(Path(self.paths["shared_memory"]), "shared", 0o600)
        self.look()

    def look(self):
        self.before = {name: self.view(name) for name in self.paths}

    def view(self, name):
        path = self.paths[name]
        try:
            found, attributes = os.lstat(path), sorted(os.listxattr(path))
        except OSError as error:
            return str(error)
        times = (found.st_mtime_ns == MARK_NS, found.st_ctime_ns - found.st_mtime_ns > 0 and name != "data")
        if name == "data":
            return found.st_mode, found.st_uid, attributes, times
        return found.st_mode, found.st_uid, attributes, times, found.st_ctime_ns, found.st_size

    def changed(self):
        """Names of changed objects; restores them."""
        changed = {name for name in self.paths if self.view(name) != self.before[name]}
        for name in changed:
            self.restore(name)
        self.look()
        return changed

    def restore(self, name):
        path, before = self.paths[name], self.before[name]
        if isinstance(before, str):
            return
        os.chmod(path, before[0] & 0o7777)
        if "user.hostile" not in before[2]:
            try:
                os.removexattr(path, "user.hostile")
            except OSError:
                pass

    def remove(self):
        Path(self.paths["shared_memory"]).unlink(missing_ok=True)


def left_files(place, kind):
    """Files that outlive their process, `{NAME: path}`; removes them."""
    import sysconfig
    name = f"{LEFT}-{place.run}-{kind.name}"
    own = [place.home, place.home / ".config/systemd/user", place.home / ".ssh", place.work, place.data, place.data / "run",
           place.work / "victim", place.work / "victim/__pycache__", place.data / "artifacts", place.data / "runners",
           place.data / "tools/other"]
    system = [Path(folder) for folder in (*LEFT_IN, sysconfig.get_paths()["stdlib"], "/usr/lib/python3.11")]
    found = {}
    for folder in [*own, *system]:
        path = folder / name
        if os.path.lexists(path):
            found[str(path)] = path.read_text()
            path.unlink()
    return found
