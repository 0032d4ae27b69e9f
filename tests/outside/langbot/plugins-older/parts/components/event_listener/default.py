"""Writes what it hears to a file; it fails at one text and hangs at another."""

import asyncio
import json

from langbot_plugin.api.definition.components.common.event_listener import EventListener
from langbot_plugin.api.entities import context, events


def note(*words):
    with open("heard.jsonl", "a", encoding="utf-8") as file:
        file.write(json.dumps(words) + "\n")


class Listener(EventListener):
    async def initialize(self):
        @self.handler(events.PersonNormalMessageReceived)
        async def received(ctx: context.EventContext):
            text = ctx.event.text_message
            note("received", ctx.event.sender_id, text)
            if text == "hang":
                await asyncio.sleep(600)
            if text == "fail":
                raise ValueError("not today")
            ctx.prevent_default()

        @self.handler(events.NormalMessageResponded)
        async def responded(ctx: context.EventContext):
            note("responded", ctx.event.response_text)
