"""Connections through dormouse from a client to a server object, both in this process.

COLUMN selects one:

  bridged   client - stdio - bridge - the server: without dormouse, for comparison
  wrapped   client - stdio - `dormouse -- bridge` - the server
  endpoint  client - HTTP - `dormouse --http`, /servers/server/mcp, bridge - the server
  remote    client - HTTP - `dormouse --http`, /servers/server/mcp, url - the server's own HTTP app

DORMOUSE is the program. Messages on both sides of it are kept in `wire`, one per line.
"""

import json
import os
import re
import shutil
import signal
import sys
import tempfile
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream

COLUMN = os.environ.get("COLUMN", "wrapped")
DORMOUSE = os.environ.get("DORMOUSE", "dormouse")
WRAPPER = [DORMOUSE, "--surface", "direct", "--"]
BRIDGE = [sys.executable, "-I", "-S", str(Path(__file__).with_name("bridge.py"))]
# Startup of the endpoint's server: eager, lazy or hybrid.
STARTUP = os.environ.get("STARTUP", "eager")
# Seconds between the start of dormouse and the start of the client.
HEAD_START = float(os.environ.get("HEAD_START", "0"))
GRACE = 3
LONGEST = 64 << 20

wire: list[str] = []
# The programs that run.
running_processes: list[anyio.abc.Process] = []


def note(way: str, line: str) -> None:
    wire.append(f"{way} {line}")


async def lines(stream):
    """Yields the lines of a byte stream until it ends or breaks."""
    buffered = BufferedByteReceiveStream(stream)
    with suppress(
        anyio.IncompleteRead,
        anyio.ClosedResourceError,
        anyio.BrokenResourceError,
        anyio.EndOfStream,
    ):
        while True:
            yield (await buffered.receive_until(b"\n", LONGEST)).decode()


@asynccontextmanager
async def messages(receive, send, names, parse, dump):
    """Yields the two message streams that the SDK needs, over two byte streams.

    Received and sent messages are noted under `names`; `parse` and `dump` are the SDK's.
    """
    in_writer, in_reader = anyio.create_memory_object_stream(0)
    out_writer, out_reader = anyio.create_memory_object_stream(0)

    async def read():
        async with in_writer:
            async for line in lines(receive):
                note(names[0], line.rstrip())
                with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                    await in_writer.send(parse(line))

    async def write():
        async with out_reader:
            async for message in out_reader:
                line = dump(message)
                note(names[1], line)
                try:
                    await send.send(line.encode() + b"\n")
                except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                    return

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        tasks.start_soon(write)
        try:
            yield in_reader, out_writer
        finally:
            await out_writer.aclose()
            await in_reader.aclose()
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def served(serve, folder):
    """Serves each connection to a socket with `serve(byte_stream)`; yields a command to connect."""
    path = f"{folder}/socket"

    async def handle(stream):
        async with stream:
            with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                await serve(stream)

    async with (
        await anyio.create_unix_listener(path) as listener,
        anyio.create_task_group() as tasks,
    ):
        inner = await tasks.start(accepting, listener, handle)
        try:
            yield [*BRIDGE, path]
        finally:
            # Connections that are still open get a moment to end by themselves.
            with anyio.CancelScope(shield=True), anyio.move_on_after(GRACE):
                await inner.idle()
            tasks.cancel_scope.cancel()


class Open:
    """The number of open connections."""

    def __init__(self):
        self.count = 0

    async def idle(self):
        while self.count:
            await anyio.sleep(0.005)


async def accepting(listener, handle, *, task_status):
    is_open = Open()

    async def counted(stream):
        is_open.count += 1
        try:
            await handle(stream)
        finally:
            is_open.count -= 1

    task_status.started(is_open)
    await listener.serve(counted)


@asynccontextmanager
async def running(command, folder):
    """Runs a program that ends, with its children, at the end of the block."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("XDG_", "DORMOUSE"))
    }
    environment |= {"HOME": folder, "XDG_CACHE_HOME": f"{folder}/cache", "XDG_RUNTIME_DIR": folder}
    environment |= {"DORMOUSE_LOG": os.environ.get("DORMOUSE_LOG", "info"), "DORMOUSE_DAEMON": "0"}
    # A test that is cancelled here would leave a process that nothing ends.
    with anyio.CancelScope(shield=True):
        process = await anyio.open_process(command, env=environment, cwd=folder)
    running_processes.append(process)
    try:
        yield process
    finally:
        with anyio.CancelScope(shield=True):
            with suppress(OSError, anyio.BrokenResourceError):
                await process.stdin.aclose()
            if COLUMN in ("endpoint", "remote"):
                with suppress(ProcessLookupError):
                    process.terminate()
            with anyio.move_on_after(GRACE) as late:
                await process.wait()
            if late.cancelled_caught:
                note("!!", "dormouse did not end by itself")
                process.kill()
                await process.wait()
            running_processes.remove(process)
            await process.stdout.aclose()
            await process.stderr.aclose()


def end_abandoned():
    """Ends the programs of tests that have closed their event loop without leaving `running`."""
    for process in running_processes:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGTERM)


@asynccontextmanager
async def listening(entry, folder):
    """Runs dormouse on HTTP with one server of this entry; yields the URL of its endpoint."""
    config = anyio.Path(folder, "dormouse.json")
    await config.write_text(
        json.dumps({"mcpServers": {"server": {**entry, "startup": STARTUP}}}), encoding="utf-8"
    )
    async with running(
        [DORMOUSE, "--config", str(config), "--http", "127.0.0.1:0"], folder
    ) as process:
        address = None
        async for line in lines(process.stderr):
            note("err", line.rstrip())
            if address := re.search(r"http://127\.0\.0\.1:\d+", line):
                break
        assert address, "dormouse says where it listens"
        async with log_of(process):
            await anyio.sleep(HEAD_START)
            yield f"{address[0]}/servers/server/mcp"


@asynccontextmanager
async def log_of(process):
    """Notes the log of dormouse."""

    async def read():
        async for line in lines(process.stderr):
            note("err", line.rstrip())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        yield
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def plainly():
    """Unwraps groups of one exception, so that tests and pytest see the exception itself."""
    try:
        yield
    except BaseExceptionGroup as group:
        failure = group
        while isinstance(failure, BaseExceptionGroup) and len(failure.exceptions) == 1:
            failure = failure.exceptions[0]
        raise failure from None


@asynccontextmanager
async def folder():
    """Yields a new folder whose path is short enough for sockets."""
    made = tempfile.mkdtemp(prefix="dm", dir="/tmp")
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
