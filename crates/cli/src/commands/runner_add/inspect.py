# Prints what the manifests of a LangBot plugin say, as JSON. Runs none of the plugin's code.
import glob
import importlib.metadata
import json
import os
import sys

import yaml

folder = sys.argv[1]


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            told = yaml.safe_load(file) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        sys.exit(f"`{path}` cannot be read: {error}")
    if not isinstance(told, dict):
        sys.exit(f"`{path}` is not a mapping")
    return told


def component_files(group):
    for name in (group or {}).get("fromFiles") or []:
        yield os.path.join(folder, name)
    for entry in (group or {}).get("fromDirs") or []:
        depth = int(entry.get("maxDepth", 1))
        for level in range(depth):
            pattern = os.path.join(folder, entry["path"], *["*"] * level, "*.y*ml")
            yield from sorted(glob.glob(pattern))


manifest = read(os.path.join(folder, "manifest.yaml"))
metadata = manifest.get("metadata") or {}
runners = []
for group in ((manifest.get("spec") or {}).get("components") or {}).values():
    for path in component_files(group):
        component = read(path)
        if component.get("kind") in ("Runner", "AgentRunner"):
            permissions = (component.get("spec") or {}).get("permissions") or {}
            name = component["metadata"]["name"]
            runners.append({"name": name, "kind": component["kind"], "permissions": permissions})
try:
    sdk_version = importlib.metadata.version("langbot-plugin")
except importlib.metadata.PackageNotFoundError:
    sdk_version = None
print(json.dumps({
    "author": metadata.get("author"),
    "name": metadata.get("name"),
    "version": metadata.get("version"),
    "sdk_version": sdk_version,
    "runners": runners,
}))
