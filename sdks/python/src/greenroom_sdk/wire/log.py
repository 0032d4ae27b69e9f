"""What the SDK itself says on stderr, which the host keeps as the runner's log.

Invariant: never on stdout, and never able to fail the run it speaks about.
"""

from __future__ import annotations

import sys
import traceback

LINE_CHARS_MAX = 300


def say(text: str) -> None:
    try:
        sys.stderr.write(f"greenroom-sdk: {text}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass  # Nobody reads the log any more.


def say_exception(text: str, error: BaseException) -> None:
    lines = traceback.format_exception(type(error), error, error.__traceback__)
    say(text + "\n" + "".join(lines).rstrip())


def told(error: BaseException) -> str:
    """An exception in a line, also one that cannot say what it is."""
    name = type(error).__name__
    try:
        text = str(error)
    except Exception:
        text = ""
    return f"{name}: {text}" if text else name


def shown(value: object) -> str:
    """A value as it would be written, or its type where it cannot be."""
    try:
        return repr(value)
    except Exception:
        return type(value).__name__


def one_line(text: str) -> str:
    """What others sent, as a part of a line."""
    line = " ".join("".join(one if one.isprintable() else " " for one in text).split())
    return line if len(line) <= LINE_CHARS_MAX else line[:LINE_CHARS_MAX] + "…"
