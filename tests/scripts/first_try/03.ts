const graph = await mcp.memory.read_graph();
const dependents = {};
for (const e of graph.entities) if (e.entityType === 'module') dependents[e.name] = new Set();
for (const r of graph.relations) {
  if (r.relationType === 'depends on' && r.from !== r.to && dependents[r.to]) dependents[r.to].add(r.from);
}
const rows = Object.entries(dependents)
  .map(([module, set]: any) => ({ module, count: set.size, dependents: [...set].sort() }))
  .sort((a, b) => b.count - a.count);
const top = rows.filter((r) => r.count === rows[0].count);
return top.length === 1 ? top[0] : top;
