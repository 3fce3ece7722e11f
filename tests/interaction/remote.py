"""Serves the server's own streamable HTTP app on a free loopback port."""

import socket
from contextlib import asynccontextmanager, contextmanager

import anyio
import uvicorn


class Quiet(uvicorn.Server):
    """A uvicorn server that installs no signal handlers."""

    @contextmanager
    def capture_signals(self):
        yield


@asynccontextmanager
async def app_at(app):
    """Serves an ASGI app; yields the address of its `/mcp`."""
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=1, ws="none")
    served = Quiet(config)
    is_over = anyio.Event()

    async def serve():
        await served.serve([listening])
        is_over.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        finally:
            served.should_exit = True
            with anyio.CancelScope(shield=True):
                await is_over.wait()
