"""Sends an event with the generated client and reads its run, by the types of the client alone."""

import sys

from greenroom_client import AuthenticatedClient
from greenroom_client.api.events import accept_event
from greenroom_client.api.runs import get_run
from greenroom_client.models import AgentInput, EventAnswer, NewEvent, RunView

client = AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2])
event = NewEvent(event_type="message.received", conversation_id="generated-py", input_=AgentInput(text="hi"))
answer = accept_event.sync(client=client, body=event)
assert isinstance(answer, EventAnswer), answer
run = get_run.sync(answer.run_id or "", client=client)
assert isinstance(run, RunView), run
assert run.conversation_id == "generated-py", run
print("python: sent and read", answer.status)
