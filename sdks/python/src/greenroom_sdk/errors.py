"""Errors: refusals of the host as typed exceptions, and failures of runs and tools.

Invariant: every exception has a `code` and says whether a retry may help (`retryable`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import ValidationError

from greenroom_sdk.protocol import AgentAPIError


class GreenroomError(Exception):
    """The base of all exceptions of this SDK."""

    # Subclasses of users may not call `__init__` below.
    code: str = "runner.error"
    message: str = ""
    retryable: bool = False

    def __init__(self, code: str, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.code, self.message, self.retryable = code, message, retryable

    def __str__(self) -> str:
        return f"{self.message} ({self.code})"


class RunFailure(GreenroomError):
    """Raise it to end a run with `run.failed` and your own code, such as `weather.no_station`."""


class ToolError(GreenroomError):
    """Raise it in a tool to answer its call with an error."""


class InvalidPlugin(GreenroomError):
    """The plugin cannot be served."""

    def __init__(self, message: str) -> None:
        super().__init__("plugin.invalid", message)


class ApiError(GreenroomError):
    """A call to the host failed."""

    default_code: ClassVar[str] = "runtime_error"
    details: dict[str, Any]

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        retryable: bool = False,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(code or self.default_code, message, retryable=retryable)
        self.details = dict(details or {})


class Unauthorized(ApiError):
    """Not granted to this run, denied, or the run has ended."""

    default_code = "unauthorized"


class NotFound(ApiError):
    """It does not exist, or this run may not see it."""

    default_code = "not_found"


class InvalidArgument(ApiError):
    """Malformed, or `if_version` did not match (`details["reason"]`)."""

    default_code = "invalid_argument"


class PayloadTooLarge(ApiError):
    default_code = "payload_too_large"


class RateLimited(ApiError):
    """Too many calls; wait and retry."""

    default_code = "rate_limited"


class DeadlineExceeded(ApiError):
    """The run's deadline has passed."""

    default_code = "deadline_exceeded"


class HostError(ApiError):
    """The host failed, or the connection was lost."""

    default_code = "runtime_error"


KINDS: dict[str, type[ApiError]] = {
    kind.default_code: kind
    for kind in (Unauthorized, NotFound, InvalidArgument, PayloadTooLarge, RateLimited, DeadlineExceeded, HostError)
}


def refusal(error: Mapping[str, Any]) -> ApiError:
    """The exception for a JSON-RPC error; only `-32000` carries a refusal with a code."""
    message = str(error.get("message") or "the host refused the call")
    if error.get("code") == -32000:
        try:
            given = AgentAPIError.model_validate(error.get("data"))
        except ValidationError:
            pass
        else:
            kind = KINDS.get(given.code, HostError)
            return kind(given.message, code=given.code, retryable=given.retryable, details=given.details)
    return HostError(message, details={"rpc_code": error.get("code")})


def reasons(error: ValidationError) -> str:
    """One line that names each invalid field."""
    lines = []
    for one in error.errors(include_url=False, include_input=False):
        field = ".".join(str(part) for part in one["loc"])
        reason = one["msg"].removeprefix("Value error, ")
        lines.append(f"`{field}`: {reason}" if field else reason)
    return "; ".join(lines)
