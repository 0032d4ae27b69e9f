"""A runner elsewhere, over WebSocket, on a client library that knows nothing of the host: `websockets`."""
import asyncio, json, sys
import websockets


async def play(socket, request, run, text):
    async def result(kind, data):
        params = {"run_id": run, "type": kind, "data": data}
        await socket.send(json.dumps({"jsonrpc": "2.0", "method": "run.result", "params": params}))

    if text.startswith("huge"):
        await result("message.completed", {"message": {"role": "assistant", "content": "x" * 9_000_000}})
    for word in text.split():
        await result("message.delta", {"chunk": {"role": "assistant", "content": word + " "}})
    if text.startswith("drop"):
        return socket.transport.abort()
    if text.startswith("wait"):
        return
    await result("run.completed", {"finish_reason": "stop"})
    await socket.send(json.dumps({"jsonrpc": "2.0", "id": request, "result": {}}))


async def serve(url, token):
    headers = {"Authorization": f"Bearer {token}"}
    async with websockets.connect(url, additional_headers=headers) as socket:
        plugin = {"author": "test", "name": "remote", "version": "1"}
        manifest = {"id": "plugin:test/remote/main", "name": "main", "label": {"en_US": "Remote"}}
        answers = {
            "initialize": {"protocol_version": "1", "plugin": plugin},
            "list_agent_runners": {"runners": [manifest]},
        }
        async for frame in socket:
            message = json.loads(frame)
            method, request, params = message["method"], message.get("id"), message["params"]
            if method == "run_agent":
                context = params["context"]
                await play(socket, request, context["run_id"], context["input"]["text"])
            elif request is not None:
                await socket.send(json.dumps({"jsonrpc": "2.0", "id": request, "result": answers.get(method, {})}))


try:
    asyncio.run(serve(*sys.argv[1:]))
    print("closed")
except websockets.exceptions.InvalidStatus as error:
    print("refused", error.response.status_code)
except websockets.exceptions.ConnectionClosed as error:
    print("lost", error.rcvd.code, error.rcvd.reason) if error.rcvd else print("lost")
