#!/usr/bin/env python3
"""Records the data folder of a release, on SQLite and on PostgreSQL, with every kind of fact in it.

    cargo run -q -p greenroom-testkit --bin with-postgres -- \\
        tests/folders/record.py --binary target/debug/greenroom --out tests/folders/X.Y.Z

Python 3.11, standard library only; `pg_dump` and `psql` for the PostgreSQL half.
"""
import argparse
import glob
import io
import json
import lzma
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import tarfile

import driving
import reading
import scenario

# Neutral, because paths might be part of what is recorded.
PLACE = pathlib.Path("/tmp/greenroom-recorded")
# The longest that the configuration allows.
WEEK_S = 604_800
# A recorded question must not expire before a test answers it: 2100-01-01.
FAR_AWAY_MS = 4_102_444_800_000
FAR_AWAY = f"UPDATE approvals SET expires_at = {FAR_AWAY_MS} WHERE status = 'pending'"
# Written by the process that runs, of no use to another one.
NOT_KEPT = {"host.json", "lock"}


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--binary", required=True, type=pathlib.Path)
    arguments.add_argument("--out", required=True, type=pathlib.Path)
    arguments.add_argument("--postgres", default=os.environ.get("GREENROOM_TEST_POSTGRES"), help="URL of a server")
    given = arguments.parse_args()
    if not given.postgres:
        sys.exit("error: no PostgreSQL\nhint: run this under `with-postgres`, or give --postgres URL")
    given.out.mkdir(parents=True, exist_ok=True)
    record_sqlite(given.binary.resolve(), given.out)
    record_postgres(given.binary.resolve(), given.out, given.postgres)
    here = pathlib.Path(__file__).parent
    for name in ("greenroom.toml", "runner.py", "script.toml"):
        shutil.copyfile(here / name, given.out / name)


def record_sqlite(binary, out):
    folder = fresh_place()
    expected = play(binary, folder, f"sqlite:{folder}/data/greenroom.db")
    amend(folder / "data" / "greenroom.db")
    expected["tables"] = tables_of_sqlite(folder)
    pack(folder / "data", {"expected.json": as_text(expected)}, out / "sqlite.tar.xz")


def record_postgres(binary, out, server):
    folder, name = fresh_place(), "greenroom_recorded"
    base = server.rsplit("/", 1)[0]
    psql(server, f"DROP DATABASE IF EXISTS {name}")
    psql(server, f"CREATE DATABASE {name}")
    url = f"{base}/{name}"
    expected = play(binary, folder, url)
    psql(url, FAR_AWAY)
    dump = [program("pg_dump"), "--no-owner", "--no-privileges", "--inserts", "--rows-per-insert=50", url]
    dump = subprocess.run(dump, check=True, capture_output=True, text=True).stdout
    psql(server, f"DROP DATABASE {name}")
    # Guards of newer versions of psql, which no other client understands; a setting that older servers lack.
    dump = re.sub(r"^\\(un)?restrict .*\n|^SET transaction_timeout.*\n", "", dump, flags=re.MULTILINE)
    expected["tables"] = tables_of_dump(dump)
    pack(folder / "data", {"expected.json": as_text(expected), "dump.sql": dump}, out / "postgres.tar.xz")


def play(binary, folder, store):
    """The whole scenario, ended by `kill -9`. Gives back what the host answered about it."""
    receiver = driving.Receiver()
    host = driving.Host(binary, folder, store, receiver)
    played = scenario.Play(host)
    host.configure(expires_s=1)
    host.start()
    try:
        scenario.expiring(played)
        host.stop()
        host.configure(expires_s=WEEK_S)
        host.start()
        scenario.settled(played)
        scenario.under_way(played)
        return reading.read(host, played.names)
    finally:
        host.kill()


def amend(database):
    """Puts off the expiry of open questions. The process ends without closing, so that the log stays as it is."""
    if os.fork() == 0:
        connection = sqlite3.connect(database, isolation_level=None)
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute(FAR_AWAY)
        os._exit(0)
    assert os.wait()[1] == 0


def tables_of_sqlite(folder):
    """How many rows each table has, read from a copy."""
    copy = folder / "copy"
    copy.mkdir()
    for name in glob.glob(str(folder / "data" / "greenroom.db*")):
        shutil.copy(name, copy)
    connection = sqlite3.connect(copy / "greenroom.db")
    # Python's SQLite may be too old for the search index itself; the tables behind it are plain.
    tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
                                " AND sql NOT LIKE 'CREATE VIRTUAL%'").fetchall()
    return {name: connection.execute(f'SELECT COUNT(*) FROM "{name}"').fetchone()[0] for (name,) in tables}


def tables_of_dump(dump):
    """How many statements fill each table."""
    tables = {name: 0 for name in re.findall(r"^CREATE TABLE public\.(\w+)", dump, re.MULTILINE)}
    for name in re.findall(r"^INSERT INTO public\.(\w+)", dump, re.MULTILINE):
        tables[name] += 1
    return tables


def as_text(expected):
    """What is to be compared with; nothing if the scenario has left a table empty."""
    empty = [name for name, rows in expected["tables"].items() if rows == 0]
    if empty:
        sys.exit(f"error: nothing was recorded in {', '.join(empty)}\nhint: add a scene to scenario.py")
    return json.dumps(expected, ensure_ascii=False, indent=1, sort_keys=True)


def pack(data, texts, archive):
    """The data folder, as whoever copies it has it, and texts beside it."""
    def strip(member):
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        return member if member.isdir() or member.isreg() else None

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for entry in sorted(data.iterdir()):
            if entry.name not in NOT_KEPT:
                tar.add(entry, f"data/{entry.name}", filter=strip)
        for name, text in texts.items():
            content = text.encode()
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    archive.write_bytes(lzma.compress(packed.getvalue(), preset=9 | lzma.PRESET_EXTREME))


def fresh_place():
    shutil.rmtree(PLACE, ignore_errors=True)
    return PLACE


def program(name):
    """A program of PostgreSQL: the newest of Debian's versions, else the one on the path."""
    versions = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"))
    return versions[-1] if versions else name


def psql(url, statement):
    subprocess.run([program("psql"), "-q", "-v", "ON_ERROR_STOP=1", url, "-c", statement], check=True)


if __name__ == "__main__":
    main()
