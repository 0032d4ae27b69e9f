"""A chat completion service. What it says follows from the last message, so that a test can steer it:

    break        refuses the request
    tool         calls `echo` once;  tools: calls `slow` three times in one answer
    long         a long answer in many pieces;  wait: one piece, then nothing for a while
    cut          breaks the connection after the first piece

Anything else is answered with what it has seen: the number of user messages, of pictures, and the first words."""

import json

from .base import Fake


class Openai(Fake):
    # Models of this name refuse every request, for tests of fallbacks.
    broken = "broken"

    def answer(self, handler, path, body):
        asked = json.loads(body)
        text = text_of(asked["messages"][-1])
        if "break" in text or asked["model"] == self.broken:
            return handler.whole(400, {"error": {"message": "no", "type": "invalid_request_error"}})
        if is_summary(asked):
            return self.reply(handler, asked, "A summary of what was said.")
        if asked["messages"][-1]["role"] == "tool":
            outcomes = [text_of(one) for one in asked["messages"] if one["role"] == "tool"]
            return self.reply(handler, asked, f"{len(outcomes)} outcomes, {sum('pong' in one for one in outcomes)} pong")
        wanted = [("echo", 1)] if "the tool" in text else [("slow", 3)] if "tools" in text else []
        calls = [call(number, name, asked) for kind, count in wanted for number in range(count)
                 for name in [tool_named(kind, asked)] if name]
        if calls:
            return self.reply(handler, asked, None, calls)
        if "cut" in text:
            return cut(handler, asked)
        self.reply(handler, asked, "word " * 60 + "end" if "long" in text else what_it_saw(asked), waits="wait" in text)

    def reply(self, handler, asked, text, calls=(), waits=False):
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        reason = "tool_calls" if calls else "stop"
        if not asked.get("stream"):
            message = {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}
            return handler.whole(200, {"id": "1", "object": "chat.completion", "created": 1, "model": asked["model"],
                                       "choices": [{"index": 0, "message": message, "finish_reason": reason}],
                                       "usage": usage})
        deltas = [{"tool_calls": calls}] if calls else [{"content": text[at:at + 5]} for at in range(0, len(text), 5)]
        lines = [chunk(asked, {"role": "assistant", **delta}) for delta in deltas]
        lines += [chunk(asked, {}, reason), chunk(asked, None, usage=usage), "data: [DONE]\n\n"]
        handler.pieces("text/event-stream", lines, waits)


def chunk(asked, delta, reason=None, **more):
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": reason}]
    return "data: " + json.dumps({"id": "1", "object": "chat.completion.chunk", "created": 1, "model": asked["model"],
                                  "choices": choices, **more}) + "\n\n"


def cut(handler, asked):
    """One piece of an answer, and the connection ends."""
    handler.send_response(200)
    handler.send_header("content-type", "text/event-stream")
    handler.send_header("transfer-encoding", "chunked")
    handler.end_headers()
    data = chunk(asked, {"role": "assistant", "content": "first"}).encode()
    handler.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
    handler.wfile.flush()
    handler.close_connection = True
    handler.connection.shutdown(2)


def call(number, name, asked):
    return {"index": number, "id": f"call_{len(asked['messages'])}_{number}", "type": "function",
            "function": {"name": name, "arguments": json.dumps({"text": "pong"})}}


def tool_named(kind, asked):
    names = [tool["function"]["name"] for tool in asked.get("tools") or []]
    return next((name for name in names if kind in name), None)


def is_summary(asked):
    """LocalAgent asks for one with a prompt of its own."""
    words = " ".join(text_of(one) for one in asked["messages"] if one["role"] == "system").lower()
    return not asked.get("tools") and "summar" in words and "conversation" in words


def text_of(message):
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def what_it_saw(asked):
    users = [one for one in asked["messages"] if one["role"] == "user"]
    pictures = sum(part["type"] == "image_url" for one in users if isinstance(one["content"], list)
                   for part in one["content"])
    return f"turn {len(users)} pictures {pictures}"
