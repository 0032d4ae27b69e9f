"""The folder of one pass: the host's files, the operator's home, canaries, and who owns them.

    BASE/                 open to everybody
      greenroom           a copy of the binary, owned by the host's user
      home/               the operator's home: keys, history, sockets
      loot/               where a fooled program would put what it copied
      work/               greenroom.toml, secrets, one folder per runner, log
      work/data/          the data folder
"""

import os
import secrets
import shutil
import tempfile
from pathlib import Path

# Free on common systems; has no entry in /etc/passwd.
USER = 61_729


class Place:
    def __init__(self, binary, uid):
        self.uid = self.gid = uid
        self.run = secrets.token_hex(4)
        self.base = Path(tempfile.mkdtemp(prefix="gh-", dir="/tmp"))
        os.chmod(self.base, 0o755)
        self.work, self.home, self.loot = self.base / "work", self.base / "home", self.base / "loot"
        self.data = self.work / "data"
        self.secrets = {}
        self.python = python()
        self.binary = self.base / "greenroom"
        shutil.copyfile(binary, self.binary)
        os.chmod(self.binary, 0o755)
        os.chown(self.binary, uid, uid)
        for path, mode in ((self.work, 0o755), (self.home, 0o700), (self.loot, 0o777), (self.home / ".ssh", 0o700),
                           (self.data, 0o700), (self.home / ".config/systemd/user", 0o700), (self.work / "secrets", 0o700), (self.work / "victim/__pycache__", 0o755),
                           (self.data / "tools/other", 0o700)):
            self.folder(path, mode)
        self.write(self.home / ".ssh/id_ed25519", self.secret("ssh key"), 0o600)
        self.write(self.home / ".ssh/authorized_keys", "", 0o600)
        self.write(self.home / ".bash_history", self.secret("history"), 0o600)
        self.write(self.home / ".bashrc", "", 0o644)
        self.write(self.work / "secrets/website-token", self.secret("website token"), 0o600)
        self.write(self.work / "secrets/victim-secret", self.secret("victim"), 0o600)

    def secret(self, name):
        return self.secrets.setdefault(name, f"canary-{secrets.token_hex(12)}")

    def folder(self, path, mode=0o755):
        for part in [*reversed(path.parents), path]:
            if part.is_relative_to(self.base) and not part.exists():
                part.mkdir()
                self.own(part, mode)
        return path

    def own(self, path, mode):
        os.chown(path, self.uid, self.gid)
        os.chmod(path, mode)

    def write(self, path, text, mode=0o644):
        if not path.parent.exists():
            self.folder(path.parent)
        path.write_text(text)
        self.own(path, mode)

    def copy(self, source, path):
        self.write(path, source.read_text())

    def as_user(self):
        """Arguments of `Popen` that start a process as the host's user."""
        if os.getuid() == self.uid:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}


def python():
    """An interpreter that every user can run."""
    for path in ("/usr/bin/python3", "/usr/local/bin/python3"):
        if os.path.exists(path):
            return os.path.realpath(path)
    return shutil.which("python3")
