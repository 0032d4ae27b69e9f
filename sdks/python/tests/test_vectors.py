"""The golden vectors that every SDK accepts or rejects alike."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from greenroom_sdk import protocol

ROOT = Path(__file__).resolve().parents[3]
VECTORS = ROOT / "crates" / "protocol" / "vectors"


def vectors(folder: str) -> list[Any]:
    found = sorted((VECTORS / folder).rglob("*.json"))
    assert len(found) > 60
    return [pytest.param(path, id=f"{path.parent.name}/{path.stem}") for path in found]


def reread(name: str, value: Any) -> Any:
    adapter = TypeAdapter(getattr(protocol, name))
    read = adapter.validate_json(json.dumps(value))
    return adapter.dump_python(read, by_alias=True)


@pytest.mark.parametrize("path", vectors("valid"))
def test_a_valid_vector_is_read_and_written_as_expected(path: Path) -> None:
    vector = json.loads(path.read_text("utf-8"))
    written = reread(vector["type"], vector["value"])
    assert written == vector.get("expect", vector["value"]), vector["why"]
    assert reread(vector["type"], written) == written


@pytest.mark.parametrize("path", vectors("invalid"))
def test_an_invalid_vector_is_refused(path: Path) -> None:
    vector = json.loads(path.read_text("utf-8"))
    with pytest.raises(ValidationError):
        reread(vector["type"], vector["value"])


def test_every_schema_has_a_class() -> None:
    schemas = {path.stem for path in (ROOT / "docs" / "schema").glob("*.json")}
    assert [name for name in sorted(schemas) if not hasattr(protocol, name)] == []


def test_the_generated_file_is_what_the_schemas_say() -> None:
    tools = ROOT / "sdks" / "python" / "tools"
    sys.path.insert(0, str(tools))
    import generate_models

    committed = generate_models.TARGET.read_text("utf-8")
    assert generate_models.generated() == committed, "run `python tools/generate_models.py`"
