"""Rules of the protocol that a schema cannot express: sizes in bytes, names, times, ids.

Invariant: each rule raises `ValueError` with one sentence, or changes nothing but a cap.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

STATE_VALUE_BYTES_MAX = 256 * 1024
STATE_KEY_BYTES_MAX = 256
STORAGE_KEY_BYTES_MAX = 512
NAME_BYTES_MAX = 512
QUERY_BYTES_MAX = 4096
FILTER_VALUES_MAX = 100
PAGE_LIMIT_MAX = 200
TOP_K_MAX = 100
LIFETIME_S_MAX = 100 * 365 * 24 * 3600
RUN_CODE_BYTES_MAX = 128
TOOL_BYTES_MAX = 64 * 1024
NESTING_MAX = 100
EXACT_MAX = 2**53
UNIX_S_MIN, UNIX_S_MAX = -62_135_596_800, 253_402_300_799

_RUNNER_ID = re.compile(r"plugin:([A-Za-z0-9_.-]+)/([A-Za-z0-9_.-]+)/([A-Za-z0-9_.-]+)")
_TOOL_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_MIME_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+")
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")


# Values


def whole(value: Any) -> Any:
    """Accepts `3` and `3.0`, rejects `3.5`, `true` and `"3"`."""
    if isinstance(value, float) and value.is_integer() and abs(value) <= EXACT_MAX:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**63) <= value < 2**63:
        raise ValueError("not a whole number")
    return value


def runner_id(text: str) -> str:
    parts = _RUNNER_ID.fullmatch(text)
    if parts is None or len(text) > 256 or any(part in (".", "..") for part in parts.groups()):
        raise ValueError("not a runner id of the form `plugin:author/name/runner`")
    return text


def present_texts(value: Any) -> Any:
    """Drops null translations."""
    if isinstance(value, dict):
        return {locale: text for locale, text in value.items() if text is not None}
    return value


def moment(value: Any) -> Any:
    """RFC 3339 text or a `datetime` as Unix seconds."""
    if isinstance(value, str):
        if _RFC3339.fullmatch(value) is None:
            raise ValueError("not a time in RFC 3339 or Unix seconds")
        value = datetime.fromisoformat(_six_digits(value))
    if isinstance(value, datetime):
        value = (value if value.tzinfo else value.replace(tzinfo=timezone.utc)).timestamp()
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not UNIX_S_MIN <= value <= UNIX_S_MAX:
        raise ValueError("not a time in RFC 3339 or Unix seconds")
    return int(value) if value == int(value) else value


def _six_digits(text: str) -> str:
    """Python 3.10 accepts `+00:00` but not `Z`, and only fractions of six digits."""
    text = re.sub(r"\.(\d+)", lambda digits: "." + digits[1][:6].ljust(6, "0"), text)
    return re.sub(r"[Zz]$", "+00:00", text)


def trigger_source(value: Any) -> Any:
    """Maps the older name of a source."""
    return "host_adapter" if value == "pipeline_adapter" else value


# Fields


def size_of(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def has_control(text: str) -> bool:
    return any(ord(char) < 32 or 127 <= ord(char) < 160 for char in text)


def need(condition: bool, sentence: str) -> None:
    if not condition:
        raise ValueError(sentence)


def check_name(field: str, name: str | None, most: int = NAME_BYTES_MAX) -> None:
    if name is not None:
        need(0 < size_of(name) <= most, f"`{field}` must have 1 to {most} bytes")
        need(not has_control(name), f"`{field}` has control characters")


def check_prefix(text: str | None) -> None:
    need(text is None or not has_control(text), "`prefix` has control characters")


def check_query(field: str, query: str) -> None:
    fits = bool(query.strip()) and size_of(query) <= QUERY_BYTES_MAX
    need(fits, f"`{field}` must have 1 to {QUERY_BYTES_MAX} bytes that are not blank")


def check_base64(field: str, text: str | None) -> None:
    need(text is None or _BASE64.fullmatch(text) is not None, f"`{field}` is not base64")


def check_one_word(field: str, text: str) -> None:
    check_name(field, text, RUN_CODE_BYTES_MAX)
    need(not any(char.isspace() for char in text), f"`{field}` has spaces")


def cap(item: Any, field: str, most: int) -> None:
    """Caps a number at its maximum."""
    value = getattr(item, field)
    if value is not None and value > most:
        item.__dict__[field] = most


def depth(value: Any) -> int:
    deepest, open_values = 0, [(value, 1)]
    while open_values:
        item, level = open_values.pop()
        if isinstance(item, (dict, list)):
            deepest = max(deepest, level)
            inner = item.values() if isinstance(item, dict) else item
            open_values.extend((part, level + 1) for part in inner)
    return deepest


# Structures


def _storage_key(params: Any) -> None:
    check_name("key", params.key, STORAGE_KEY_BYTES_MAX)
    need("\\" not in params.key, "`key` has a `\\`")
    parts = params.key.split("/")
    need(not {"", ".", ".."} & set(parts), "`key` has an empty part, `.` or `..` between its `/`")


def _state_key(params: Any) -> None:
    check_name("key", params.key, STATE_KEY_BYTES_MAX)


def _state_updated(update: Any) -> None:
    _state_key(update)
    size = size_of(json.dumps(update.value, ensure_ascii=False, separators=(",", ":")))
    need(size <= STATE_VALUE_BYTES_MAX, f"`value` has {size} bytes, at most {STATE_VALUE_BYTES_MAX} are allowed")


def _state_set(params: Any) -> None:
    _state_key(params)
    need((params.ttl_s or 1) <= LIFETIME_S_MAX, "`ttl_s` is more than a hundred years")


def _storage_set(params: Any) -> None:
    _storage_key(params)
    check_base64("value", params.value)


def _page(params: Any) -> None:
    if hasattr(params, "prefix"):
        check_prefix(params.prefix)
    cap(params, "limit", PAGE_LIMIT_MAX)


def _event_page(params: Any) -> None:
    _page(params)
    need(len(params.event_types or []) <= FILTER_VALUES_MAX, "`event_types` has too many values")


def _history_search(params: Any) -> None:
    check_query("query", params.query)
    cap(params, "top_k", TOP_K_MAX)


def _history_filters(filters: Any) -> None:
    for field in ("event_types", "roles"):
        most = FILTER_VALUES_MAX
        need(len(getattr(filters, field) or []) <= most, f"`{field}` has more than {most} values")


def _retrieve(params: Any) -> None:
    check_name("kb_id", params.kb_id)
    check_query("query_text", params.query_text)
    cap(params, "top_k", TOP_K_MAX)


def _artifact_append(params: Any) -> None:
    check_name("upload_id", params.upload_id)
    check_base64("data_base64", params.data_base64)


def _artifact_begin(params: Any) -> None:
    if params.name is not None:
        check_name("name", params.name, 255)
        is_path = params.name in (".", "..") or "/" in params.name or "\\" in params.name
        need(not is_path, "`name` must be a file name, not a path")
    if params.mime_type is not None:
        essence = params.mime_type.split(";")[0].strip()
        is_plain = params.mime_type.isascii() and params.mime_type.isprintable() and len(params.mime_type) <= 255
        need(is_plain and _MIME_TYPE.fullmatch(essence) is not None, "`mime_type` is not a MIME type")
    need((params.expires_in_s or 1) <= LIFETIME_S_MAX, "`expires_in_s` is more than a hundred years")


def _artifact_create(params: Any) -> None:
    _artifact_begin(params)
    check_base64("content_base64", params.content_base64)


def _artifact_created(artifact: Any) -> None:
    need(artifact.artifact_id != "", "`artifact_id` is empty")
    is_hash = artifact.sha256 is None or re.fullmatch(r"[0-9A-Fa-f]{64}", artifact.sha256)
    need(bool(is_hash), "`sha256` must have 64 hexadecimal digits")
    check_base64("content_base64", artifact.content_base64)


def _media(element: Any) -> None:
    has_source = element.artifact_id or element.url or element.data_base64
    need(bool(has_source), "media needs `artifact_id`, `url` or `data_base64`")
    is_bytes = not element.artifact_id and not element.url
    need(not is_bytes or bool(element.mime_type), "bytes by value need their `mime_type`")


def _harness_permission(params: Any) -> None:
    need(1 <= len(params.title.encode()) <= 4096, "`title` must have 1 to 4096 bytes")
    paths, changes = params.paths or [], params.changes or []
    need(len(paths) <= 100 and len(changes) <= 100, "`paths` and `changes` have at most 100 items each")
    every = [*paths, *(change.path for change in changes)]
    need(all(len(path.encode()) <= 4096 for path in every), "a path has at most 4096 bytes")


def _new_event(event: Any) -> None:
    names = ("event_type", "source", "event_id", "source_event_type", "locale", "bot_id")
    for field in (*names, "workspace_id", "conversation_id", "thread_id", "agent"):
        check_name(field, getattr(event, field))
    if event.event_time is not None:
        need(UNIX_S_MIN <= event.event_time <= UNIX_S_MAX, "`event_time` is beyond the calendar")


def _manifest(manifest: Any) -> None:
    need(manifest.name == manifest.id.rpartition("/")[2], "`name` is not the last part of `id`")
    version = manifest.protocol_version.split(".")
    is_ours = version[0] == "1" and all(part.isascii() and part.isdigit() for part in version)
    need(is_ours, f"protocol version `{manifest.protocol_version}` is not supported, `1` is")


def _plugin_tool(tool: Any) -> None:
    has_name = _TOOL_NAME.fullmatch(tool.name) is not None
    need(has_name, "its name must have 1 to 128 of the characters A-Z a-z 0-9 _ . -")
    is_object = tool.input_schema.get("type", "object") == "object"
    need(is_object, "`input_schema` must be a JSON Schema of the type `object`")
    need(depth(tool.input_schema) < NESTING_MAX, f"it is nested deeper than {NESTING_MAX} levels")
    size = size_of(tool.model_dump_json())
    need(size <= TOOL_BYTES_MAX, f"it has {size} bytes, at most {TOOL_BYTES_MAX} are taken")


def _name(field: str) -> Callable[[Any], None]:
    return lambda item: check_name(field, getattr(item, field))


def _tool_search(params: Any) -> None:
    check_query("query", params.query)
    cap(params, "top_k", TOP_K_MAX)


def _count_tokens(params: Any) -> None:
    need(params.text is not None or bool(params.messages), "`messages` or `text` is needed")


RULES: dict[str, Callable[[Any], None]] = {
    "ActionRequested": lambda request: need(request.action != "", "`action` is empty"),
    "AgentRunnerManifest": _manifest,
    "ArtifactAppendParams": _artifact_append,
    "ArtifactBeginParams": _artifact_begin,
    "ArtifactCommitParams": _name("upload_id"),
    "ArtifactCreateParams": _artifact_create,
    "ArtifactCreated": _artifact_created,
    "ArtifactIdParams": _name("artifact_id"),
    "AudioElement": _media,
    "CountTokensParams": _count_tokens,
    "EventGetParams": _name("event_id"),
    "EventPageParams": _event_page,
    "FileElement": _media,
    "HistoryFilters": _history_filters,
    "HistoryPageParams": _page,
    "HistorySearchParams": _history_search,
    "ImageElement": _media,
    "KnowledgeRetrieveParams": _retrieve,
    "HarnessPermissionParams": _harness_permission,
    "ModelEmbedParams": _name("model_id"),
    "ModelInvokeParams": lambda params: need(bool(params.messages), "`messages` is empty"),
    "ModelRerankParams": lambda params: check_query("query", params.query),
    "NewEvent": _new_event,
    "OpenStreamParams": _name("artifact_id"),
    "PluginTool": _plugin_tool,
    "ReadRangeParams": _name("artifact_id"),
    "RequestActionParams": lambda params: check_one_word("action", params.action),
    "RunFailed": lambda failed: check_one_word("code", failed.code),
    "StateDeleteParams": _state_key,
    "StateGetParams": _state_key,
    "StateListParams": _page,
    "StateSetParams": _state_set,
    "StateUpdated": _state_updated,
    "SteeringPullParams": _page,
    "StorageDeleteParams": _storage_key,
    "StorageGetParams": _storage_key,
    "StorageListParams": _page,
    "StorageSetParams": _storage_set,
    "ToolCallParams": _name("tool_name"),
    "ToolDetailParams": _name("tool_name"),
    "ToolSearchParams": _tool_search,
    "VideoElement": _media,
}
