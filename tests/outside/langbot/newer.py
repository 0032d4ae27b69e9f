"""A copy of a plugin of the older dialect with the names of the newer one, so that it runs on the published SDK.

Only names change: imports, base classes, the kind of the component and the `usages` that the newer dialect requires."""

import pathlib
import re
import shutil

NAMES = [
    ("langbot_plugin.api.definition.components.agent_runner.runner", "langbot_plugin.api.definition.components.runner.runner"),
    ("langbot_plugin.api.entities.builtin.agent_runner", "langbot_plugin.api.entities.builtin.runner"),
    ("langbot_plugin.api.proxies.agent_run import", "langbot_plugin.api.proxies.runner import"),
    ("AgentRunAPIProxy", "RunnerAPIProxy"),
    ("AgentRunContext", "RunnerContext"),
    ("AgentRunResultType", "RunnerResultType"),
    ("AgentRunResult", "RunnerResult"),
]
# Not a part of another name, such as `DefaultAgentRunner`.
BASE = re.compile(r"\bAgentRunner\b")


def renamed(source, target):
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(".git", "__pycache__", ".venv", "tests"))
    for path in pathlib.Path(target).rglob("*"):
        if path.suffix == ".py":
            text = path.read_text()
            for old, new in NAMES:
                text = text.replace(old, new)
            path.write_text(BASE.sub("Runner", text))
        elif path.name == "manifest.yaml" and path.parent == pathlib.Path(target):
            path.write_text(re.sub(r"^(\s+)AgentRunner:", r"\1Runner:", path.read_text(), flags=re.M))
        elif path.suffix == ".yaml" and "kind: AgentRunner" in path.read_text():
            text = path.read_text().replace("kind: AgentRunner", "kind: Runner")
            path.write_text(text.replace("\nspec:\n", "\nspec:\n  usages: [agent]\n", 1))
    return target
