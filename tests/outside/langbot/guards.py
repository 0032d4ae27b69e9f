"""What only a plugin of our own can try on the SDK of the older dialect: it exits, cancels itself, prints, and so on."""

import base64
import json

from hosts.played import PNG


def add(host, folder, python):
    host.add("guards", folder, "greenroom-tests/guards", python, {}, {"state": ["conversation"]})


def cells(host):
    """(cell, whether it worked)."""
    def pid():
        return next(one for one in host.call("/v1/runners")["items"] if one["name"] == "guards")["pid"]

    yield "loads", host.loads("guards")
    before = pid()
    yield "sys.exit", host.play("guards", "g1", "exit").status == "failed"
    yield "stray CancelledError", host.play("guards", "g2", "stray").status == "failed"
    yield "print without newline", host.play("guards", "g3", "print").answers == ["print"]
    told = json.loads(host.play("guards", "g4", "input", picture="alone").answers[0])
    yield "picture in", told["attachments"][0]["content"].endswith(base64.b64encode(PNG).decode()) or told
    host.play("guards", "g5", "state")
    yield "state over two turns", host.play("guards", "g5", "state").answers[-1:] == ["2"]
    yield "one process for all of it", before == pid()
