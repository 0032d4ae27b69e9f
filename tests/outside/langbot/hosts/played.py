"""What a host shows of one turn."""

import base64
import dataclasses


PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")


@dataclasses.dataclass
class Played:
    status: str
    # The messages that the user sees at the end.
    answers: list
    # What was shown on the way, in order.
    shown: list
    error: str = ""
    # The results of the run, where the host tells them.
    results: list = dataclasses.field(default_factory=list)

    def streamed(self):
        return len(set(self.shown)) > 1
