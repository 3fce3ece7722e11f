"""The Python SDK as a host: python.py ERA WAY TARGET…

ERA is `legacy` or `auto` (modern if the server is). WAY is `stdio` (TARGET: a command and its
arguments), `http` or `sse` (TARGET: a URL). Exits with 0 if every feature of a host has worked.
"""

import asyncio
import sys

from mcp import Client, StdioServerParameters, types
from mcp.client.sse import sse_client

era, way, *target = sys.argv[1:]


async def sample(context, params):
    content = types.TextContent(type="text", text="sampled in Python")
    return types.CreateMessageResult(role="assistant", content=content, model="none")


async def elicit(context, params):
    fields = params.requested_schema["properties"]
    return types.ElicitResult(
        action="accept", content={name: "elicited in Python" for name in fields}
    )


def server():
    match way:
        case "stdio":
            return StdioServerParameters(command=target[0], args=target[1:])
        case "http":
            return target[0]
        case "sse":
            return sse_client(target[0])


async def main():
    client = Client(server(), mode=era, sampling_callback=sample, elicitation_callback=elicit)
    progress = []

    async def note(value, total, message):
        progress.append(value)

    async with client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names == ["discover_tool", "use_tool", "load_mcp"], names
        loaded = await client.call_tool("load_mcp", {"mcp_name": "u"})
        assert loaded.structured_content["mcp_name"] == "u", loaded

        async def use(tool, **given):
            arguments = {"tool_name": f"u/{tool}", "tool_input": given}
            result = await client.call_tool("use_tool", arguments, progress_callback=note)
            return result.content[0]

        assert (await use("test_image_content")).type == "image"
        assert "sampled in Python" in (await use("test_sampling", prompt="p")).text
        assert "elicited in Python" in (await use("test_elicitation", message="m")).text
        await use("test_tool_with_progress")
        assert progress[-3:] == [0, 50, 100], progress
        read = await client.read_resource("test://static-text")
        assert "static text" in read.contents[0].text
        prompt = await client.get_prompt("test_simple_prompt")
        assert len(prompt.messages) == 1


asyncio.run(main())
