const { entities } = await mcp.memory.search_nodes({ query: 'review' });
return entities.map((e) => e.name);
