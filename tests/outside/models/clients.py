"""The model server against the official clients of OpenAI, Anthropic and Google, unmodified.

Every check is written by hand from the clients' own types. Run with the server's address as the one argument.
"""

import sys

import anthropic
import openai
from google import genai
from google.genai import errors, types
from pydantic import BaseModel

HELLO = "You said: 你好 there"
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


class Person(BaseModel):
    name: str
    age: int


def same(got, expected):
    assert got == expected, f"{got!r} is not {expected!r}"


def refused(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"{kind} was expected")


def openai_chat(url):
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0)
    user = lambda text: [{"role": "user", "content": text}]
    create = client.chat.completions.create

    whole = create(model="m", messages=user("你好 there"))
    same(whole.choices[0].message.content, HELLO)
    same(whole.choices[0].finish_reason, "stop")
    same((whole.usage.prompt_tokens, whole.usage.completion_tokens, whole.usage.total_tokens), (12, 5, 17))
    same(whole.usage.prompt_tokens_details.cached_tokens, 4)

    pieces, usage = [], None
    options = {"include_usage": True}
    for chunk in create(model="m", messages=user("你好 there"), stream=True, stream_options=options):
        pieces += [choice.delta.content for choice in chunk.choices if choice.delta.content]
        usage = chunk.usage or usage
    same("".join(pieces), HELLO)
    assert len(pieces) > 2, pieces
    same(usage.total_tokens, 17)

    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}]
    messages = user("weather in Oslo?")
    with client.chat.completions.stream(model="m", messages=messages, tools=tools) as stream:
        message = stream.get_final_completion().choices[0].message
    call = message.tool_calls[0]
    same((call.function.name, call.function.arguments), ("get_weather", '{"city":"Oslo"}'))
    messages += [message, {"role": "tool", "tool_call_id": call.id, "content": "cold"}]
    same(create(model="m", messages=messages, tools=tools).choices[0].message.content, "It is cold.")

    parsed = client.chat.completions.parse(model="m", messages=user("x"), response_format=Person)
    same(parsed.choices[0].message.parsed, Person(name="scripted", age=0))

    error = refused(openai.RateLimitError, lambda: create(model="m", messages=user("too much")))
    same((error.status_code, error.response.headers["retry-after"]), (429, "1"))
    refused(openai.APIConnectionError, lambda: create(model="m", messages=user("break off")))
    patient = client.with_options(max_retries=3).chat.completions.create
    same(patient(model="m", messages=user("patience")).choices[0].message.content, "You said: patience")

    vectors = client.embeddings.create(model="m", input=["a cat", "a cat", "tax"]).data
    same(vectors[0].embedding, vectors[1].embedding)
    assert abs(sum(x * x for x in vectors[2].embedding) - 1) < 1e-4
    same([model.id for model in client.models.list()], ["scripted"])


def openai_responses(url):
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0)
    create = client.responses.create

    whole = create(model="m", input="你好 there", instructions="be brief")
    same((whole.output_text, whole.status), (HELLO, "completed"))
    same((whole.usage.input_tokens, whole.usage.output_tokens), (12, 5))

    with client.responses.stream(model="m", input="你好 there") as stream:
        pieces = [event.delta for event in stream if event.type == "response.output_text.delta"]
        final = stream.get_final_response()
    same(("".join(pieces), final.output_text), (HELLO, HELLO))

    thought = create(model="m", input="think").output
    same([item.type for item in thought], ["reasoning", "message"])
    same(thought[0].summary[0].text, "I think so.")

    tools = [{"type": "function", "name": "get_weather", "parameters": SCHEMA, "strict": True}]
    asked = [{"role": "user", "content": "weather in Oslo?"}]
    with client.responses.stream(model="m", input=asked, tools=tools) as stream:
        list(stream)
        output = stream.get_final_response().output
    same([item.type for item in output], ["message", "function_call"])
    call = output[1]
    same((call.name, call.arguments), ("get_weather", '{"city":"Oslo"}'))
    answered = {"type": "function_call_output", "call_id": call.call_id, "output": "cold"}
    again = asked + [item.to_dict() for item in output] + [answered]
    same(create(model="m", input=again, tools=tools).output_text, "It is cold.")

    parsed = client.responses.parse(model="m", input="x", text_format=Person)
    same(parsed.output_parsed, Person(name="scripted", age=0))
    refused(openai.RateLimitError, lambda: create(model="m", input="too much"))


def anthropic_messages(url):
    client = anthropic.Anthropic(base_url=url, api_key="any", max_retries=0)
    user = lambda text: [{"role": "user", "content": text}]
    ask = lambda messages, **more: client.messages.create(
        model="m", max_tokens=99, messages=messages, **more
    )

    whole = ask(user("你好 there"), system="be brief")
    same((whole.content[0].text, whole.stop_reason), (HELLO, "end_turn"))
    same((whole.usage.input_tokens, whole.usage.output_tokens), (8, 5))
    same(whole.usage.cache_read_input_tokens, 4)

    with client.messages.stream(model="m", max_tokens=99, messages=user("你好 there")) as stream:
        pieces = list(stream.text_stream)
        final = stream.get_final_message()
    same(("".join(pieces), final.content[0].text), (HELLO, HELLO))
    same((final.usage.input_tokens, final.usage.output_tokens), (8, 5))

    with client.messages.stream(model="m", max_tokens=99, messages=user("think")) as stream:
        thinking, text = stream.get_final_message().content
    same((thinking.thinking, thinking.signature), ("I think so.", "c2lnbmF0dXJl"))
    same(text.text, "Yes.")

    tools = [{"name": "get_weather", "input_schema": SCHEMA}]
    messages = user("weather in Oslo?")
    with client.messages.stream(model="m", max_tokens=99, messages=messages, tools=tools) as stream:
        message = stream.get_final_message()
    same(message.stop_reason, "tool_use")
    call = message.content[1]
    same((call.name, call.input), ("get_weather", {"city": "Oslo"}))
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "cold"}
    messages += [{"role": "assistant", "content": message.content}, {"role": "user", "content": [result]}]
    same(ask(messages, tools=tools).content[0].text, "It is cold.")

    count = client.messages.count_tokens(model="m", messages=user("12345678"))
    same(count.input_tokens, 6)
    error = refused(anthropic.RateLimitError, lambda: ask(user("too much")))
    same((error.status_code, error.type), (429, "rate_limit_error"))
    same([model.id for model in client.models.list()], ["scripted"])


def gemini(url):
    client = genai.Client(api_key="any", http_options=types.HttpOptions(base_url=url))
    ask = lambda contents, **config: client.models.generate_content(
        model="gemini-x", contents=contents, config=types.GenerateContentConfig(**config)
    )

    whole = ask("你好 there", system_instruction="be brief")
    same((whole.text, whole.candidates[0].finish_reason), (HELLO, types.FinishReason.STOP))
    same((whole.usage_metadata.prompt_token_count, whole.usage_metadata.total_token_count), (12, 17))

    pieces = list(client.models.generate_content_stream(model="gemini-x", contents="你好 there"))
    same("".join(piece.text or "" for piece in pieces), HELLO)
    assert len(pieces) > 2, pieces
    same(pieces[-1].usage_metadata.candidates_token_count, 5)

    thought, said = ask("think").candidates[0].content.parts
    same((thought.thought, thought.text, said.text), (True, "I think so.", "Yes."))
    same(said.thought_signature, b"signature")

    declared = types.FunctionDeclaration(name="get_weather", parameters_json_schema=SCHEMA)
    tools = [types.Tool(function_declarations=[declared])]
    question = types.Content(role="user", parts=[types.Part(text="weather in Oslo?")])
    answer = ask([question], tools=tools)
    call = answer.function_calls[0]
    same((call.name, call.args), ("get_weather", {"city": "Oslo"}))
    result = types.Part.from_function_response(name="get_weather", response={"output": "cold"})
    contents = [question, answer.candidates[0].content, types.Content(role="user", parts=[result])]
    same(ask(contents, tools=tools).text, "It is cold.")

    def get_weather(city: str) -> str:
        """The weather in a city."""
        return f"cold in {city}"

    same(ask("weather in Oslo?", tools=[get_weather]).text, "It is cold in Oslo.")

    parsed = ask("x", response_mime_type="application/json", response_schema=Person).parsed
    same(parsed, Person(name="scripted", age=0))
    same(client.models.count_tokens(model="gemini-x", contents="12345678").total_tokens, 6)
    error = refused(errors.ClientError, lambda: ask("too much"))
    same((error.code, error.status), (429, "RESOURCE_EXHAUSTED"))
    vectors = client.models.embed_content(model="gemini-x", contents=["a cat", "a cat"]).embeddings
    same(vectors[0].values, vectors[1].values)


def main():
    url = sys.argv[1].strip()
    for check in (openai_chat, openai_responses, anthropic_messages, gemini):
        check(url)
        print(f"{check.__name__}: ok")


if __name__ == "__main__":
    main()
