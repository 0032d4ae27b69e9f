"""What `greenroom runner new --lang python` writes: its own test passes, and so do the checks of its types."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TEMPLATE = Path(__file__).resolve().parents[3] / "crates" / "sdk" / "templates" / "python-sdk"


def test_the_template_passes_its_own_test_and_the_type_checker(tmp_path: Path) -> None:
    for path in TEMPLATE.rglob("*.py"):
        target = tmp_path / path.relative_to(TEMPLATE)
        target.parent.mkdir(exist_ok=True)
        target.write_text(path.read_text("utf-8").replace("my-runner", "parrot"), "utf-8")
    for command in (["pytest", "-q", "tests"], ["mypy", "--strict", "runner.py"]):
        done = subprocess.run(
            [sys.executable, "-m", *command],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(TEMPLATE.parents[3] / "sdks" / "python" / "src")},
        )
        assert done.returncode == 0, done.stdout + done.stderr
