"""The kinds of process that a host starts, and how each is configured and asked."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    name: str
    # "agent": the run itself; "tool": a call of a tool; "method": a call of the project CLI.
    asked_as: str
    wire: str = "native"
    # The value of `network` as TOML.
    network: str = "false"
    # None: every family.
    families: tuple = None
    memory_mb: int = 256
    processes: int = 32
    sandbox: str = "on"

    @property
    def table(self):
        return {"agent": "runners", "tool": "runners" if self.wire == "native" else "tools", "method": "module"}[self.asked_as]


FIVE = (
    Kind("native", "agent"),
    Kind("langbot", "agent", wire="langbot"),
    Kind("plugin", "tool"),
    Kind("mcp", "tool", wire="mcp"),
    Kind("module", "method", wire="module", memory_mb=1024),
)
NETWORK = ("network",)
# The same programs with a network: `LISTED` stands for the listed address.
WITH_NETWORK = (
    Kind("native-all", "agent", network="true", families=NETWORK),
    Kind("native-list", "agent", network='["127.0.0.1:LISTED"]', families=NETWORK),
    Kind("mcp-all", "tool", wire="mcp", network="true", families=NETWORK),
    Kind("mcp-list", "tool", wire="mcp", network='["127.0.0.1:LISTED"]', families=NETWORK),
    Kind("module-all", "method", wire="module", network="true", families=NETWORK),
)
ALL = FIVE + WITH_NETWORK
# Without a sandbox: shows that the attacks work.
CONTROL = (Kind("native", "agent", network="true", sandbox="off"),)
