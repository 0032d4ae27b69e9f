"""Runners as real processes: failures are reported and do not affect other runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from processes import WAIT_S, Process

ECHO = """
    @plugin.runner()
    async def run(ctx):
        yield delta(ctx.text)
"""


def test_a_print_goes_to_stderr_with_one_warning_that_names_the_place(tmp_path: Path) -> None:
    source = """
        import os, subprocess
        print("while importing")
        @plugin.runner()
        async def run(ctx):
            print("first")
            print("second")
            os.write(1, b"past python\\n")
            sys.stdout.buffer.write(b"as bytes\\n")
            subprocess.run([sys.executable, "-c", "print('a child')"])
            sys.stdout.flush()
            yield message("fine")
    """
    with Process(tmp_path, source) as process:
        results = process.run()
        assert [result["type"] for result in results] == ["message.completed", "run.completed"]
        process.wait_for_log("a child")
        assert process.ended() == 0
        log = process.log
    for text in ("while importing", "first", "second", "past python", "as bytes"):
        assert f"{text}\n" in log
    assert log.count("printed to stdout") == 1
    assert f"`run` ({tmp_path / 'subject.py'}:" in log


def test_a_print_while_importing_is_caught_even_unbuffered(tmp_path: Path) -> None:
    source = """
        from greenroom_sdk import *
        print("loud import", flush=True)
        plugin = Plugin("tests", "subject")
        @plugin.runner()
        async def run(ctx):
            yield message("fine")
    """
    with Process(tmp_path, source, "-u", "-m", "greenroom_sdk", whole=True) as process:
        assert process.run()[0]["data"]["message"]["content"] == "fine"
        assert "loud import" in process.log


def test_a_run_that_blocks_the_loop_is_named_and_others_go_on_afterwards(tmp_path: Path) -> None:
    source = """
        def crunch():
            time.sleep(2.5)

        @plugin.runner()
        async def run(ctx):
            if ctx.text == "block":
                crunch()
            yield message(ctx.text)
    """
    with Process(tmp_path, source) as process:
        process.start_run("r1", "block")
        process.start_run("r2", "quick")
        log = process.wait_for_log("blocks the event loop")
        assert "run r1 blocks the event loop for more than 1 s in `crunch`" in log
        assert "subject.py:" in log
        assert "time.sleep(2.5)" in log
        assert "asyncio.to_thread" in log
        results = process.results("r1", "r2")
        assert [found[-1]["type"] for found in results.values()] == ["run.completed"] * 2
        process.wait_for_log("the event loop continues after")


def test_runs_that_raise_in_odd_places_fail_alone(tmp_path: Path) -> None:
    source = """
        @plugin.runner()
        async def run(ctx):
            if ctx.text == "import":
                import no_such_module
            if ctx.text == "exit":
                sys.exit(1)
            if ctx.text == "deep":
                def again(n): return again(n + 1)
                again(0)
            if ctx.text == "memory":
                raise MemoryError
            if ctx.text == "task":
                async def fail(): raise OSError("in a task")
                asyncio.ensure_future(fail())
                await asyncio.sleep(0.01)
            if ctx.text == "stop":
                raise StopAsyncIteration
            yield message("fine")
    """
    cases = {
        "import": "ModuleNotFoundError",
        "exit": "sys.exit(1)",
        "deep": "RecursionError",
        "memory": "MemoryError",
        "stop": "StopAsyncIteration",
    }
    with Process(tmp_path, source) as process:
        for text in [*cases, "task", "fine"]:
            process.start_run(text, text)
        results = process.results(*cases, "task", "fine")
        for text, sentence in cases.items():
            assert len(results[text]) == 1
            assert results[text][0]["data"]["code"] == "runner.error"
            assert sentence in results[text][0]["data"]["message"]
        assert results["fine"][-1]["type"] == results["task"][-1]["type"] == "run.completed"
        assert "run import failed\nTraceback" in process.log
        assert process.ended() == 0


def test_a_file_that_cannot_be_imported_ends_with_its_traceback(tmp_path: Path) -> None:
    for command in ((), ("-m", "greenroom_sdk")):
        with Process(tmp_path, "import no_such_module", *command, whole=True) as process:
            assert process.process.wait(WAIT_S) == 1
            assert process.messages.get(timeout=WAIT_S) is None
            process.wait_for_log("ModuleNotFoundError: No module named 'no_such_module'")


def test_a_manifest_that_is_not_valid_ends_with_what_is_wrong(tmp_path: Path) -> None:
    source = """
        @plugin.runner("my runner", label="x")
        async def run(ctx):
            yield message("x")
    """
    with Process(tmp_path, source) as process:
        assert process.process.wait(WAIT_S) == 1
        process.wait_for_log("error: the manifest of `plugin:tests/subject/my runner` is not valid")


def test_big_lines_pass_both_ways(tmp_path: Path) -> None:
    source = """
        @plugin.runner()
        async def run(ctx):
            yield message(ctx.text[::-1])
    """
    text = "héllo" * 400_000
    with Process(tmp_path, source) as process:
        results = process.run("r1", text)
        assert results[0]["data"]["message"]["content"] == text[::-1]


def test_three_hundred_runs_at_once_all_end(tmp_path: Path) -> None:
    source = """
        import contextlib
        waiting = []
        @plugin.runner()
        async def run(ctx, api):
            gate = asyncio.Event()
            waiting.append(gate)
            if len(waiting) == 300:
                for one in waiting: one.set()
            await gate.wait()
            for number in range(20):
                yield delta(f"{ctx.run_id}-{number} ")
    """
    names = [f"r{number}" for number in range(300)]
    with Process(tmp_path, source) as process:
        for name in names:
            process.start_run(name)
        results = process.results(*names)
        for name in names:
            text = "".join(one["data"]["chunk"]["content"] for one in results[name][:-1])
            assert text == "".join(f"{name}-{number} " for number in range(20))
            assert results[name][-1]["type"] == "run.completed"


def test_a_host_that_does_not_read_slows_the_run_and_not_its_memory(tmp_path: Path) -> None:
    source = """
        @plugin.runner()
        async def run(ctx):
            if ctx.text == "count":
                peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
                yield message(str(int(peak.split()[1]) // 1024))
                return
            for _ in range(2000):
                yield delta("x" * 100_000)
    """
    with Process(tmp_path, source) as process:
        results = process.run("r1")
        assert len(results) == 2001
        megabytes = int(process.run("r2", "count")[0]["data"]["message"]["content"])
        # 200 MB went through.
        assert megabytes < 150


@pytest.mark.parametrize("line", [b"{ this is not JSON", b"[]", b'"text"', b"\xff\xfe", b'{"id": {}, "method": "x"}'])
def test_a_broken_line_is_answered_and_the_process_goes_on(tmp_path: Path, line: bytes) -> None:
    with Process(tmp_path, ECHO) as process:
        process.send(line)
        assert process.next()["error"]["code"] in (-32700, -32600)
        assert process.run()[-1]["type"] == "run.completed"


def test_shutdown_ends_the_runs_answers_and_exits(tmp_path: Path) -> None:
    source = """
        @plugin.runner()
        async def run(ctx):
            yield delta("x")
            await asyncio.Event().wait()
    """
    with Process(tmp_path, source) as process:
        process.start_run("r1")
        assert process.next()["params"]["type"] == "message.delta"
        process.say(id=9, method="shutdown", params={})
        assert process.next()["params"]["data"]["code"] == "cancelled"
        assert process.next()["id"] == "r1"
        assert process.next() == {"jsonrpc": "2.0", "id": 9, "result": {}}
        assert process.process.wait(WAIT_S) == 0


def test_the_process_ends_with_its_input_even_if_a_thread_or_a_run_hangs(tmp_path: Path) -> None:
    source = """
        @plugin.runner()
        async def run(ctx):
            yield delta("x")
            if ctx.text == "thread":
                await asyncio.to_thread(time.sleep, 1000)
            while True:
                try:
                    await asyncio.sleep(1000)
                except asyncio.CancelledError:
                    pass
    """
    for text in ("thread", "stubborn"):
        with Process(tmp_path, source) as process:
            process.start_run("r1", text)
            assert process.next()["params"]["type"] == "message.delta"
            assert process.ended() == 0


def test_a_run_that_leaves_tasks_and_calls_behind_is_named(tmp_path: Path) -> None:
    source = """
        async def forgotten():
            await asyncio.Event().wait()

        @plugin.runner()
        async def run(ctx, api):
            ctx.keep = [asyncio.create_task(forgotten()) for _ in range(2)]
            yield message("done")
    """
    with Process(tmp_path, source) as process:
        assert process.run()[-1]["type"] == "run.completed"
        process.wait_for_log("run r1 ended with 2 tasks still running: `forgotten`, `forgotten`")
        assert process.ended() == 0


def test_the_process_ends_when_nobody_reads_what_it_says(tmp_path: Path) -> None:
    source = """
        @plugin.runner()
        async def run(ctx):
            yield delta("x")
            await asyncio.Event().wait()
    """
    with Process(tmp_path, source, reads=False) as process:
        process.start_run("r1")
        assert process.process.stdout is not None
        assert b"message.delta" in process.process.stdout.readline()
        process.process.stdout.close()
        process.start_run("r2")
        assert process.process.wait(WAIT_S) == 0


def test_a_tool_call_is_given_up_by_the_host(tmp_path: Path) -> None:
    source = """
        @plugin.tool()
        async def wait(how_long: float) -> str:
            try:
                await asyncio.sleep(how_long)
            except asyncio.CancelledError:
                print("given up", file=sys.stderr)
                raise
            return "done"
    """
    with Process(tmp_path, source) as process:
        call = {"tool_name": "wait", "parameters": {"how_long": 100}, "tool_call_id": "c1"}
        process.say(id=1, method="call_tool", params=call)
        process.say(method="request.cancel", params={"request_id": 1})
        process.say(id=2, method="call_tool", params={**call, "parameters": {"how_long": 0}})
        assert process.next() == {"jsonrpc": "2.0", "id": 2, "result": {"result": "done"}}
