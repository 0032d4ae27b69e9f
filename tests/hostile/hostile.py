#!/usr/bin/env python3
"""Lets hostile programs try to escape from a real host, and checks from outside what they reached. See README.md."""

import argparse
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE / "attack")]

import families  # noqa: E402,F401  registers the escapes
from registry import ESCAPES  # noqa: E402
from suite import by_design, kinds, stage  # noqa: E402
from suite.place import USER, Place  # noqa: E402
from suite.trial import Trial  # noqa: E402


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", type=Path, help="the `greenroom` to test")
    parser.add_argument("--kind", action="append", help="only this kind of process; repeatable")
    parser.add_argument("--only", action="append", help="only escapes whose name begins so; repeatable")
    parser.add_argument("--user", choices=("root", "user"), help="only as this user; default: both, as far as possible")
    parser.add_argument("--list", action="store_true", help="list the escapes and end")
    parser.add_argument("--control", action="store_true", help="attack without a sandbox, and print what is refused even then")
    parser.add_argument("--table", action="store_true", help="print the rows of the table in docs/security.md and end")
    parser.add_argument("--all", action="store_true", help="print every row, not only what was reached")
    parser.add_argument("--keep", action="store_true", help="keep the folders")
    parser.add_argument("--no-namespaces", action="store_true", help="let the host do without namespaces")
    parser.add_argument("--without", help="parts of the kernel to do without, e.g. `landlock:3` (needs the feature `faults`)")
    return parser.parse_args()


def main():
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    escapes = {name: escape for name, escape in ESCAPES.items() if not options.only or name.startswith(tuple(options.only))}
    chosen = [kind for kind in kinds.ALL if not options.kind or kind.name in options.kind]
    if options.table:
        return tables()
    if options.list:
        return listed(escapes, chosen)
    if options.control:
        return control(options, escapes)
    rows, started = [], time.monotonic()
    try:
        for user, uid in users(options):
            rows += one_pass(options, user, uid, chosen, escapes)
    except stage.HostError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    disagreements = by_design.disagreements()
    report(rows, options)
    for line in disagreements:
        print(f"error: {line}")
    failed = sum(unexpected(row, options) for row in rows) + len(disagreements)
    absent = sum(row.outcome == "absent" for row in rows)
    print(f"{len(rows) - absent} attempts of {len(escapes)} escapes in {time.monotonic() - started:.0f} s; "
          f"{absent} do not apply to this machine")
    print(f"{len(rows) + len(disagreements) - failed} passed, {failed} failed")
    return 1 if failed else 0


def expected(row, options):
    """Why it may succeed, or None."""
    titles = ["by design"]
    titles += ["without namespaces"] if options.no_namespaces else []
    titles += ["without a cgroup"] if "cgroup" not in row.parts else []
    return by_design.reason(row.name, row.kind, titles)


def unexpected(row, options):
    return row.outcome == "reached" and not expected(row, options)


def tables():
    for title, entries in by_design.TABLES.items():
        print(f"<!-- {title}: begin -->\n| escape | kind of process | why |\n|---|---|---|")
        print("\n".join(by_design.table(entries)))
        print(f"<!-- {title}: end -->")
    return 0


def users(options):
    """As root both; else only as oneself."""
    if os.getuid() != 0:
        return [("user", os.getuid())]
    both = [("root", 0), ("user", USER)]
    return [entry for entry in both if options.user in (None, entry[0])]


def one_pass(options, user, uid, chosen, escapes):
    place = Place(options.binary, uid)
    try:
        keys = stage.known_keys(place.binary, place.base)
        environment = {"HOME": str(place.home), "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8",
                       "HOSTILE_HOST_SECRET": place.secret("host environment")}
        without = ",".join(filter(None, ("namespaces" if options.no_namespaces else "", options.without)))
        if without:
            environment["GREENROOM_WITHOUT"] = without
        trial = Trial(place, chosen, escapes, keys, user, environment)
        try:
            return trial.run()
        finally:
            trial.close()
    finally:
        if options.keep:
            print(f"kept: {place.base}", file=sys.stderr)
        else:
            stage.remove(place.base)


def control(options, escapes):
    """As an ordinary user only: root without a sandbox could harm the machine."""
    rows = one_pass(options, "user", os.getuid() or USER, kinds.CONTROL, escapes)
    for row in rows:
        if row.outcome == "refused":
            print(f"{row.name:40} {plain(row.evidence)}")
    print(f"{sum(row.outcome == 'reached' for row in rows)} of {len(rows)} attacks work without a sandbox")
    return 0


def listed(escapes, chosen):
    for name, escape in sorted(escapes.items()):
        reasons = {kind.name for kind in chosen if by_design.reason(name, kind.name)}
        note = f"  (by design: {', '.join(sorted(reasons))})" if reasons else ""
        print(f"{name:40} {escape.summary}{note}")
    return 0


def report(rows, options):
    for row in rows:
        if not (options.all or unexpected(row, options)):
            continue
        mark = "by design" if row.outcome == "reached" and expected(row, options) else row.outcome
        print(f"{row.user:5} {row.kind:12} {row.name:40} {mark:10} {plain(row.evidence)}")
    print()
    print(f"{'user':5} {'kind':12} {'refused':>8} {'by design':>10} {'reached':>8} {'absent':>7}")
    for user, kind in dict.fromkeys((row.user, row.kind) for row in rows):
        mine = [row for row in rows if (row.user, row.kind) == (user, kind)]
        counts = Counter("by design" if row.outcome == "reached" and expected(row, options) else row.outcome for row in mine)
        print(f"{user:5} {kind:12} {counts['refused']:8} {counts['by design']:10} {counts['reached']:8} {counts['absent']:7}")


def plain(text):
    """In one line, without bytes that are no text."""
    return "".join(letter if letter.isprintable() else " " for letter in " ".join(text.split()))[:160]


if __name__ == "__main__":
    sys.exit(main())
