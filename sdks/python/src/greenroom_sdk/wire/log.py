"""Log lines of the SDK on stderr, which the host stores as the runner's log.

Invariant: never on stdout, and logging never fails a run.
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
        pass  # stderr is closed.


def say_exception(text: str, error: BaseException) -> None:
    lines = traceback.format_exception(type(error), error, error.__traceback__)
    say(text + "\n" + "".join(lines).rstrip())


def describe(error: BaseException) -> str:
    """An exception as one line, also if its `__str__` fails."""
    name = type(error).__name__
    try:
        text = str(error)
    except Exception:
        text = ""
    return f"{name}: {text}" if text else name


def shown(value: object) -> str:
    """The `repr` of a value, or its type if that fails."""
    try:
        return repr(value)
    except Exception:
        return type(value).__name__


def one_line(text: str) -> str:
    """Untrusted text, cleaned and shortened for a log line."""
    line = " ".join("".join(one if one.isprintable() else " " for one in text).split())
    return line if len(line) <= LINE_CHARS_MAX else line[:LINE_CHARS_MAX] + "…"
