"""The document is as strict as the server: what it allows is not refused as `invalid_argument`.

A schema cannot state everything: which cursors and surfaces exist, what a list ends with, how many bytes a text of so
many characters has. Those refusals are listed; every other one fails.
"""

import schemathesis
from schemathesis.generation import GenerationMode

# How the messages of such refusals begin.
BEYOND_A_SCHEMA = (
    "`cursor` does not belong to this list",
    "the cursor does not belong here",
    "`delivery.surface`: there is no surface",
    "`messages` contains no message to answer",
    "`messages` ends with an answer",
    # Which address this host has; a port has its range.
    "`redirect_uri` must be",
    # Names of tools are unique.
    "`tools`: `",
    # The limits count bytes, and of two fields together.
    "`tools`: a name has 1 to 128 bytes",
    "`actor_id` and `source` are too long for a token",
)
QUERY_BYTES_MAX = 1024


@schemathesis.check
def allowed_is_accepted(ctx, response, case):
    if response.status_code != 400 or case.meta is None or case.meta.generation.mode != GenerationMode.POSITIVE:
        return
    if response.headers["content-type"][0].startswith("text/html"):
        # A page for a browser, whose query is the answer of another server.
        return
    message = response.json()["error"]["message"]
    if message.startswith(BEYOND_A_SCHEMA):
        return
    if message.startswith("a query parameter is too long"):
        assert any(is_long(value, QUERY_BYTES_MAX) for value in (case.query or {}).values()), message
        return
    if "bytes" in message and has_long_text([case.path_parameters, case.query, case.body], 256):
        return
    raise AssertionError(f"the document allows it, but the server refuses: {message}")


def is_long(value, bytes_max):
    return len(str(value).encode("utf-8", "surrogatepass")) > bytes_max


def has_long_text(value, bytes_max):
    """Whether a text in a value has more bytes than this, although it may have fewer characters."""
    if isinstance(value, dict):
        return any(has_long_text(part, bytes_max) for part in value.values())
    if isinstance(value, list):
        return any(has_long_text(part, bytes_max) for part in value)
    return isinstance(value, str) and len(value) <= 512 and is_long(value, bytes_max)
