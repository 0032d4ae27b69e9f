"""Makes the calls in the input, a JSON list of [method, keyword arguments], and reports the outcome of each.
`wait` is none of them: it waits for a file."""

import asyncio
import base64
import json
import pathlib

from langbot_plugin.api.definition.components.runner.runner import Runner
from langbot_plugin.api.entities.builtin.provider.message import Message
from langbot_plugin.api.entities.builtin.runner import RunnerContext, RunnerResult
from langbot_plugin.api.entities.builtin.runner.errors import AgentAPIException
from langbot_plugin.api.proxies.runner.common import PermissionDeniedError


def told(value):
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value


def arguments(given):
    made = dict(given)
    if "messages" in made:
        made["messages"] = [Message.model_validate(message) for message in made["messages"]]
    if "bytes" in made:
        made["value"] = made.pop("bytes").encode()
    if "result" in made:
        made["result"] = RunnerResult.model_validate(made["result"])
    return made


class Calls(Runner):
    async def run(self, ctx: RunnerContext):
        outcomes = []
        for method, given in json.loads(ctx.input.to_text()):
            given = json.loads(json.dumps(given).replace("$RUN", ctx.run_id).replace("$EVENT", ctx.event.event_id)
                               .replace("$CURSOR", ctx.context.latest_cursor or ""))
            if method == "wait":
                pathlib.Path("waits").touch()
                while not pathlib.Path("gate").exists():
                    await asyncio.sleep(0.02)
                continue
            try:
                outcomes.append({"ok": told(await getattr(ctx.api, method)(**arguments(given)))})
            except AgentAPIException as error:
                outcomes.append({"code": error.error.code, "retryable": error.error.retryable,
                                 "details": error.error.details})
            except PermissionDeniedError:
                outcomes.append({"denied": method})
        yield RunnerResult.run_completed(ctx.run_id, Message(role="assistant", content=json.dumps(outcomes)))
