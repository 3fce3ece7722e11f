"""Message streams of the MCP SDK (PyPI `mcp` 2) through dormouse to a server object."""

import anyio
import mcp_types as types
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

import crossing


def parse(line):
    try:
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as problem:
        return problem


def dump(message):
    return message.message.model_dump_json(by_alias=True, exclude_unset=True)


async def streams(stack, server):
    """Returns the client's two streams to a low-level server, which `stack` closes."""

    async def serve(stream):
        async with crossing.messages(stream, stream, ("d>s", "s>d"), parse, dump) as (read, write):
            await server.run(read, write, server.create_initialization_options())

    await stack.enter_async_context(crossing.plainly())
    folder = await stack.enter_async_context(crossing.folder())
    if crossing.COLUMN == "remote":
        from remote import app_at

        entry = {"url": await stack.enter_async_context(app_at(server.streamable_http_app()))}
    else:
        command = await stack.enter_async_context(crossing.served(serve, folder))
        entry = {"command": command[0], "args": command[1:]}
    if crossing.COLUMN in ("bridged", "wrapped"):
        program = crossing.WRAPPER if crossing.COLUMN == "wrapped" else []
        process = await stack.enter_async_context(crossing.running([*program, *command], folder))
        await stack.enter_async_context(crossing.log_of(process))
        pipes = crossing.messages(process.stdout, process.stdin, ("d>h", "h>d"), parse, dump)
        return await stack.enter_async_context(pipes)
    url = await stack.enter_async_context(crossing.listening(entry, folder))
    read, write = await stack.enter_async_context(streamable_http_client(url))
    return Noted(read), Noted(write)


class Noted:
    """A stream of the SDK's HTTP client that notes its messages."""

    def __init__(self, inner):
        self.inner = inner

    async def receive(self):
        item = await self.inner.receive()
        crossing.note("d>h", dump(item) if isinstance(item, SessionMessage) else repr(item))
        return item

    async def send(self, item):
        crossing.note("h>d", dump(item))
        await self.inner.send(item)

    def __aiter__(self):
        return self

    async def __anext__(self):
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.inner.aclose()

    def __getattr__(self, name):
        return getattr(self.inner, name)
