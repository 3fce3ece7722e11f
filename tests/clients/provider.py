"""FastMCP's in-memory OAuth provider with one tool: provider.py LIFETIME

LIFETIME is the lifetime of access tokens in seconds. The address is printed on standard output.
`POST /test/EVENT` triggers an event: `expire` ends all access tokens, `revoke` the refresh tokens
too, `forget` the clients as well.
`GET /test/counts` returns the number of requests of each kind.
"""

import socket
import sys
from collections import Counter

import uvicorn
from fastmcp import FastMCP
from fastmcp.server.auth.providers import in_memory
from mcp.server.auth.settings import ClientRegistrationOptions, RevocationOptions
from starlette.responses import JSONResponse

in_memory.DEFAULT_ACCESS_TOKEN_EXPIRY_SECONDS = int(sys.argv[1])
counts = Counter()


class Provider(in_memory.InMemoryOAuthProvider):
    async def register_client(self, client_info):
        counts["registered"] += 1
        return await super().register_client(client_info)

    async def exchange_authorization_code(self, client, code):
        counts["exchanged"] += 1
        return await super().exchange_authorization_code(client, code)

    async def exchange_refresh_token(self, client, token, scopes):
        counts["refreshed"] += 1
        return await super().exchange_refresh_token(client, token, scopes)

    async def load_refresh_token(self, client, token):
        found = await super().load_refresh_token(client, token)
        counts["refused"] += found is None
        return found

    async def verify_token(self, token):
        found = await super().verify_token(token)
        counts["turned away"] += found is None
        return found

    async def revoke_token(self, token):
        counts["revoked"] += 1
        return await super().revoke_token(token)


listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()
origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
provider = Provider(
    base_url=origin,
    client_registration_options=ClientRegistrationOptions(enabled=True, valid_scopes=["use"]),
    revocation_options=RevocationOptions(enabled=True),
    required_scopes=["use"],
)
server = FastMCP("guarded", auth=provider)


@server.tool
def guarded() -> str:
    return "let in"


@server.custom_route("/test/{what}", methods=["GET", "POST"])
async def test(request):
    what = request.path_params["what"]
    if what in ("expire", "revoke", "forget"):
        provider.access_tokens.clear()
    if what in ("revoke", "forget"):
        provider.refresh_tokens.clear()
    if what == "forget":
        provider.clients.clear()
    return JSONResponse(dict(counts))


print(f"listening on {origin}/mcp", flush=True)
config = uvicorn.Config(server.http_app(path="/mcp"), log_level="warning")
uvicorn.Server(config).run(sockets=[listener])
