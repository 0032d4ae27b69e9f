"""What many escapes share: reading, writing and listing, where an empty answer is no success."""

import os

from registry import Refused


def read(path, size=4096):
    with open(path, "rb") as file:
        text = file.read(size)
    if not text:
        raise Refused("empty")
    return text.decode("latin-1")


def listing(path, having=None):
    names = os.listdir(path)
    if having is not None and having not in names:
        raise Refused(f"{len(names)} entries without {having}")
    if not names:
        raise Refused("empty")
    return sorted(names)[:20]


def append(path, text):
    """To an existing file."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    os.write(descriptor, text.encode())
    os.close(descriptor)
    return f"wrote to {path}"


def create(path, text):
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    os.write(descriptor, text.encode())
    os.close(descriptor)
    return f"created {path}"


def own(targets, suffix=""):
    """A path in a folder that this process may write to."""
    return f"{os.environ['TMPDIR']}/{targets.name.replace('.', '-')}{suffix}"
