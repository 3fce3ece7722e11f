"""pytest plugin: `Client(server)` of FastMCP (PyPI `fastmcp-slim` 4) goes through dormouse."""

from contextlib import AsyncExitStack, asynccontextmanager

from fastmcp.client.transports import memory
from fastmcp.client.transports.base import TransportOptions

import sdk
from report import *  # noqa: F403


@asynccontextmanager
async def connect_session(self, *, transport_options=None, **session_kwargs):
    """Replaces FastMCP's connection from a client to a server object in the same process."""
    session_class = (transport_options or TransportOptions()).session_class
    async with memory._enter_server_lifespan(server=self.server), AsyncExitStack() as stack:
        read, write = await sdk.streams(stack, memory._lowlevel_of(self.server))
        async with session_class(read_stream=read, write_stream=write, **session_kwargs) as session:
            yield session


memory.FastMCPTransport.connect_session = connect_session
