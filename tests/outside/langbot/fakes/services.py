"""Fakes of the services behind the official plugins, in their wire formats."""

import json

from .base import TOKEN, Fake
from .tls import Behind

# Dify's ids are UUIDs, and its plugin insists on that.
CONVERSATION = "0e5f1c1e-5c3f-4a39-9a33-3a4b5ce0a001"


def sums(words):
    """Everything so far, for services that send snapshots."""
    return ["".join(words[:number + 1]) for number in range(len(words))]


class N8n(Fake):
    """A webhook: JSON lines, or one JSON object."""

    def answer(self, handler, path, body):
        asked = json.loads(body)
        text = asked.get("chatInput") or asked.get("user_message_text") or json.dumps(asked)
        if "break" in text:
            return handler.whole(500, {"message": "workflow failed"})
        words = self.words(text, asked.get(TOKEN), "n8n")
        items = [{"type": "begin"}, *({"type": "item", "content": word} for word in words), {"type": "end"}]
        handler.pieces("application/json", [json.dumps(item) + "\n" for item in items], "wait" in text)


class Dify(Fake):
    """`/chat-messages` for the app types chat and agent, `/workflows/run`, `/files/upload`."""

    def answer(self, handler, path, body):
        if path.endswith("/files/upload"):
            return handler.whole(201, {"id": f"file-{len(self.bodies('/upload'))}", "name": "a.png"})
        asked = json.loads(body)
        text = asked.get("query") or asked["inputs"].get("langbot_user_message_text", "")
        if "break" in text:
            return handler.whole(400, {"code": "invalid_param", "message": "no such app"})
        words = self.words(text, asked["inputs"].get(TOKEN), "dify")
        if path.endswith("/workflows/run"):
            events = [{"event": "workflow_started", "data": {}},
                      {"event": "node_started", "data": {"node_type": "llm", "node_id": "n1", "title": "Model"}},
                      {"event": "workflow_finished", "data": {"outputs": {"summary": "".join(words)}, "error": None}}]
            return handler.sse(events, "wait" in text)
        events = [{"event": "message", "answer": word, "conversation_id": CONVERSATION} for word in words]
        if "think" in text:
            # An agent app: a thought with a tool, its observation, a picture, and the rest of the answer.
            events[1:1] = [{"event": "agent_thought", "id": "t1", "tool": "search", "observation": ""},
                           {"event": "agent_thought", "id": "t1", "tool": "search", "observation": "found"}]
        events.append({"event": "message_end", "conversation_id": CONVERSATION,
                       "metadata": {"usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}}})
        handler.sse(events, "wait" in text)


class Coze(Fake):
    """`/v3/chat` with events, `/v1/files/upload`."""

    def answer(self, handler, path, body):
        if path.endswith("/upload"):
            return handler.whole(200, {"code": 0, "data": {"id": f"file-{len(self.bodies('/upload'))}"}})
        asked = json.loads(body)
        text = asked["additional_messages"][0]["content"]
        if "break" in text:
            return handler.whole(500, {"code": 4000, "msg": "no such bot"})
        words = self.words(text, (asked.get("custom_variables") or {}).get(TOKEN), "coze")
        events = [("conversation.message.delta", {"role": "assistant", "type": "answer", "content": word})
                  for word in words]
        events.append(("conversation.chat.completed", {"conversation_id": "coze-1", "usage": {
            "token_count": 7, "output_count": 4, "input_count": 3}}))
        handler.sse(events, "wait" in text)


class Langflow(Fake):
    """`/api/v1/run/FLOW`: lines of JSON, each with everything so far."""

    def answer(self, handler, path, body):
        asked = json.loads(body)
        text = asked["input_value"]
        if "break" in text:
            return handler.whole(500, {"detail": "no such flow"})
        token = (asked.get("tweaks") or {}).get(TOKEN, {}).get("input_value")
        snapshots = sums(self.words(text, token, "langflow"))
        handler.sse([{"session_id": asked["session_id"], "outputs": [
            {"outputs": [{"outputs": {"message": {"message": snapshot}}}]}]} for snapshot in snapshots], "wait" in text)


class Dashscope(Fake):
    """`/apps/ID/completion`: events with pieces."""

    def answer(self, handler, path, body):
        asked = json.loads(body)
        text = asked["input"]["prompt"]
        if "break" in text:
            return handler.whole(400, {"code": "InvalidParameter", "message": "no such app", "request_id": "1"})
        words = self.words(text, (asked["input"].get("biz_params") or {}).get(TOKEN), "dashscope")
        events = [{"output": {"text": word, "session_id": "ds-1",
                              "finish_reason": "stop" if number == len(words) - 1 else "null"},
                   "usage": {"models": []}, "request_id": "1"} for number, word in enumerate(words)]
        lines = [f"id:{number}\nevent:result\n:HTTP_STATUS/200\ndata:{json.dumps(event)}\n\n"
                 for number, event in enumerate(events, 1)]
        handler.pieces("text/event-stream", lines, "wait" in text)


class Deerflow(Fake):
    """A LangGraph server: `/threads`, `/threads/ID/runs/stream`."""

    def answer(self, handler, path, body):
        if path.endswith("/threads"):
            return handler.whole(200, {"thread_id": f"thread-{len(self.bodies('/threads'))}"})
        content = json.loads(body)["input"]["messages"][-1]["content"]
        text = content if isinstance(content, str) else content[0].get("text", "")
        if "break" in text:
            return handler.whole(500, {"detail": "graph failed"})
        words = self.words(text, None, "deerflow")
        events = [("messages-tuple", [{"type": "AIMessageChunk", "id": "m1", "content": word}, {}]) for word in words]
        # At the end the whole state, which may say it otherwise than the pieces did.
        final = "".join(words) + "."
        events.append(("values", {"messages": [{"type": "human", "id": "u1", "content": text},
                                               {"type": "ai", "id": "m1", "content": final}]}))
        handler.sse([*events, ("end", {})], "wait" in text)


class Weknora(Fake):
    """`/sessions`, `/agent-chat/ID`: pieces of the answer, enough that the plugin shows some on the way."""

    def answer(self, handler, path, body):
        if path.endswith("/sessions"):
            return handler.whole(201, {"data": {"id": f"session-{len(self.bodies('/sessions'))}"}})
        text = json.loads(body)["query"]
        if "break" in text:
            return handler.sse([{"response_type": "error", "content": "no such agent", "done": True}])
        letters = list("Hello from weknora")
        events = [{"id": "1", "response_type": "tool_call", "content": "",
                   "data": {"tool_name": "search", "arguments": {"query": text}}}]
        events += [{"id": "1", "response_type": "answer", "content": letter, "done": False} for letter in letters]
        events.append({"id": "1", "response_type": "answer", "content": "", "done": True})
        handler.sse(events, "wait" in text)


class Tbox(Behind):
    """`/api/chat` with events, `/api/file/upload`."""

    name = "api.tbox.cn"

    def answer(self, handler, path, body):
        if path.endswith("/upload"):
            return handler.whole(200, {"errorCode": "0", "data": f"file-{len(self.bodies('/upload'))}"})
        text = json.loads(body)["query"]
        if "break" in text:
            return handler.whole(500, {"errorCode": "1", "errorMsg": "no such app"})
        # The plugin shows every eighth piece.
        events = [{"type": "header", "lane": "default", "payload": json.dumps({"mediaType": "text"})}]
        events += [{"type": "chunk", "lane": "default", "payload": json.dumps({
            "conversationId": "tbox-1", "messageId": "m1", "text": letter})} for letter in "Hello from tbox"]
        handler.sse([("message", event) for event in events], "wait" in text)
