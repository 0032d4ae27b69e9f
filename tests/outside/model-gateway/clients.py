"""The model gateway with the official clients of OpenAI, Anthropic and Google, unmodified.

Every client talks to a model of every provider's wire. The argument is the address of the host; the working folder
has the configuration's runner, which keeps one run per provider active and has written its token.
"""

import base64
import json
import os
import sys
import time
import urllib.request

import anthropic
import openai
from google import genai
from google.genai import errors, types

PROVIDERS = ["openai", "openai-responses", "anthropic", "gemini", "ollama"]
HELLO = "You said: 你好 there"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def same(got, expected):
    assert got == expected, f"{got!r} is not {expected!r}"


def refused(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"{kind} was expected")


def openai_chat(base, token, provider):
    client = openai.OpenAI(base_url=f"{base}/openai/v1", api_key=token, max_retries=0)
    user = lambda text: [{"role": "user", "content": text}]
    create = client.chat.completions.create
    whole = create(model="gpt-5", messages=user("你好 there"))
    same((whole.choices[0].message.content, whole.choices[0].finish_reason), (HELLO, "stop"))
    same((whole.usage.prompt_tokens, whole.usage.completion_tokens), (12, 5))
    pieces, usage = [], None
    options = {"include_usage": True}
    for chunk in create(model="gpt-5", messages=user("你好 there"), stream=True, stream_options=options):
        pieces += [choice.delta.content for choice in chunk.choices if choice.delta.content]
        usage = chunk.usage or usage
    same(("".join(pieces), usage.total_tokens), (HELLO, 17))
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}]
    messages = user("weather in Oslo?")
    with client.chat.completions.stream(model="gpt-5", messages=messages, tools=tools) as stream:
        message = stream.get_final_completion().choices[0].message
    call = message.tool_calls[0]
    same((call.function.name, json.loads(call.function.arguments)), ("get_weather", {"city": "Oslo"}))
    messages += [message, {"role": "tool", "tool_call_id": call.id, "content": "cold"}]
    same(create(model="gpt-5", messages=messages, tools=tools).choices[0].message.content, "It is cold.")
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    seen = create(model="gpt-5", messages=[{"role": "user", "content": [{"type": "text", "text": "look"}, picture]}])
    same(seen.choices[0].message.content, "You said: look")
    error = refused(openai.RateLimitError, lambda: create(model="gpt-5", messages=user("too much")))
    same(error.response.headers["retry-after"], "1")
    wrong = client.with_options(api_key="grt_wrong")
    refused(openai.AuthenticationError, lambda: wrong.models.list())
    same([model.id for model in client.models.list()], [provider, "default"])
    # A wrong key of the host is no mistake of the client.
    error = refused(openai.InternalServerError, lambda: create(model="gpt-5", messages=user("rejected")))
    same(error.status_code, 502)


def openai_responses(base, token, provider):
    client = openai.OpenAI(base_url=f"{base}/openai/v1", api_key=token, max_retries=0)
    create = client.responses.create
    whole = create(model="gpt-5-codex", input="你好 there", instructions="be brief")
    same((whole.output_text, whole.status), (HELLO, "completed"))
    same((whole.usage.input_tokens, whole.usage.output_tokens), (12, 5))
    with client.responses.stream(model="gpt-5-codex", input="你好 there") as stream:
        pieces = [event.delta for event in stream if event.type == "response.output_text.delta"]
        final = stream.get_final_response()
    same(("".join(pieces), final.output_text), (HELLO, HELLO))
    tools = [{"type": "function", "name": "get_weather", "parameters": SCHEMA, "strict": False}]
    asked = [{"role": "user", "content": "weather in Oslo?"}]
    with client.responses.stream(model="gpt-5-codex", input=asked, tools=tools) as stream:
        list(stream)
        output = stream.get_final_response().output
    call = output[-1]
    same((call.name, json.loads(call.arguments)), ("get_weather", {"city": "Oslo"}))
    answered = {"type": "function_call_output", "call_id": call.call_id, "output": "cold"}
    again = asked + [item.to_dict() for item in output] + [answered]
    same(create(model="gpt-5-codex", input=again, tools=tools).output_text, "It is cold.")
    refused(openai.RateLimitError, lambda: create(model="gpt-5-codex", input="too much"))


def anthropic_messages(base, token, provider):
    client = anthropic.Anthropic(base_url=f"{base}/anthropic", api_key=token, max_retries=0)
    user = lambda text: [{"role": "user", "content": text}]
    ask = lambda messages, **more: client.messages.create(
        model="claude-opus-4-5", max_tokens=99, messages=messages, **more
    )
    whole = ask(user("你好 there"), system="be brief")
    same((whole.content[0].text, whole.stop_reason), (HELLO, "end_turn"))
    same((whole.usage.input_tokens, whole.usage.output_tokens), (12, 5))
    with client.messages.stream(model="claude-opus-4-5", max_tokens=99, messages=user("你好 there")) as stream:
        pieces = list(stream.text_stream)
        final = stream.get_final_message()
    same(("".join(pieces), final.content[0].text), (HELLO, HELLO))
    same((final.usage.input_tokens, final.usage.output_tokens), (12, 5))
    tools = [{"name": "get_weather", "input_schema": SCHEMA}]
    messages = user("weather in Oslo?")
    with client.messages.stream(model="claude-opus-4-5", max_tokens=99, messages=messages, tools=tools) as stream:
        message = stream.get_final_message()
    same(message.stop_reason, "tool_use")
    if provider in ("anthropic", "gemini", "openai-responses"):
        assert any(block.type == "thinking" and block.signature for block in message.content), message
    call = message.content[-1]
    same((call.name, call.input), ("get_weather", {"city": "Oslo"}))
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "cold"}
    messages += [{"role": "assistant", "content": message.content}, {"role": "user", "content": [result]}]
    same(ask(messages, tools=tools).content[0].text, "It is cold.")
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
    look = {"type": "text", "text": "look"}
    same(ask([{"role": "user", "content": [look, picture]}]).content[0].text, "You said: look")
    count = client.messages.count_tokens(model="claude-opus-4-5", messages=user("12345678"))
    assert count.input_tokens > 0
    error = refused(anthropic.RateLimitError, lambda: ask(user("too much")))
    same((error.status_code, error.type), (429, "rate_limit_error"))
    same([model.id for model in client.models.list()], [provider, "default"])
    bearer = anthropic.Anthropic(base_url=f"{base}/anthropic", auth_token=token, max_retries=0)
    same(bearer.models.retrieve(provider).id, provider)


def gemini(base, token, provider):
    options = types.HttpOptions(base_url=f"{base}/gemini")
    client = genai.Client(api_key=token, http_options=options)
    ask = lambda contents, **config: client.models.generate_content(
        model="gemini-3-pro", contents=contents, config=types.GenerateContentConfig(**config)
    )
    whole = ask("你好 there", system_instruction="be brief")
    same((whole.text, whole.candidates[0].finish_reason), (HELLO, types.FinishReason.STOP))
    same((whole.usage_metadata.prompt_token_count, whole.usage_metadata.total_token_count), (12, 17))
    pieces = list(client.models.generate_content_stream(model="gemini-3-pro", contents="你好 there"))
    same("".join(piece.text or "" for piece in pieces), HELLO)
    declared = types.FunctionDeclaration(name="get_weather", parameters_json_schema=SCHEMA)
    tools = [types.Tool(function_declarations=[declared])]
    question = types.Content(role="user", parts=[types.Part(text="weather in Oslo?")])
    answer = ask([question], tools=tools)
    call = answer.function_calls[0]
    same((call.name, call.args), ("get_weather", {"city": "Oslo"}))
    result = types.Part.from_function_response(name="get_weather", response={"output": "cold"})
    contents = [question, answer.candidates[0].content, types.Content(role="user", parts=[result])]
    same(ask(contents, tools=tools).text, "It is cold.")
    picture = types.Part.from_bytes(data=base64.b64decode(PIXEL), mime_type="image/png")
    same(ask([types.Content(role="user", parts=[types.Part(text="look"), picture])]).text, "You said: look")
    assert client.models.count_tokens(model="gemini-3-pro", contents="12345678").total_tokens > 0
    error = refused(errors.ClientError, lambda: ask("too much"))
    same((error.code, error.status), (429, "RESOURCE_EXHAUSTED"))
    same([model.name for model in client.models.list()], [f"models/{provider}", "models/default"])


def post(url, token, body):
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)) as answer:
        return json.load(answer)


def start(host, admin, provider):
    """An active run of the agent with the model of this provider: its part of the address, and its token."""
    file = f"{provider}.runtime"
    steps = [["keep", "runtime", file], ["gate", f"{provider}.go"], ["end"]]
    event = {
        "event_type": "message.received",
        "agent": f"of-{provider}",
        "conversation_id": provider,
        "actor": {"actor_type": "user", "actor_id": "u1"},
        "input": {"text": json.dumps(steps)},
    }
    run = post(f"{host}/v1/events", admin, event)["run_id"]
    until = time.monotonic() + 60
    while not os.path.exists(f"puppet/{file}"):
        assert time.monotonic() < until, "the run did not start"
        time.sleep(0.02)
    with open(f"puppet/{file}") as runtime:
        metadata = json.load(runtime)["metadata"]
    return f"{metadata['host_url']}/models/runs/{run}", metadata["run_token"]


def main():
    host, admin = sys.argv[1], sys.argv[2]
    for provider in PROVIDERS:
        base, token = start(host, admin, provider)
        for check in (openai_chat, openai_responses, anthropic_messages, gemini):
            check(base, token, provider)
            print(f"{check.__name__} on a model of {provider}: ok")
        open(f"puppet/{provider}.go", "w").close()
    with open("requests") as requests:
        pictures = sum(PIXEL in line for line in requests)
    # Three clients show one to each provider.
    same(pictures, 3 * len(PROVIDERS))


if __name__ == "__main__":
    main()
