"""The attack program: one of the five kinds of process that a host starts, with hostile intentions.

Started as `escape.py KIND TAG`; a module method gets two more arguments. A request is the JSON text
`{"escapes": [NAME], "targets": {…}}`, the answer `{"reports": {NAME: {"outcome", "evidence"}}}`.
"""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

import families  # noqa: E402,F401  registers the escapes
import wires  # noqa: E402
from registry import ESCAPES, attempt  # noqa: E402


def answer(text):
    request = json.loads(text)
    targets = request["targets"]
    reports = {name: attempt(ESCAPES[name], targets) for name in request["escapes"]}
    return json.dumps({"reports": reports})


if __name__ == "__main__":
    wires.serve(sys.argv[1], answer)
