const root = 'DATA';
const { content } = await mcp.files.list_directory({ path: root });
const modules = [...content.matchAll(/^\[DIR\]\s+(.+?)\s*$/gm)].map((m) => m[1]);
const counts = await Promise.all(modules.map(async (module) => {
  const log = (await mcp.files.read_text_file({ path: `${root}/${module}/app.log` })).content;
  return { module, errors: log.split('\n').filter((line) => /^\S+\s+ERROR\b/.test(line)).length };
}));
const names = counts.filter((c) => c.errors > 100).map((c) => c.module);
if (names.length === 0) return [];
const { entities } = await mcp.memory.open_nodes({ names });
const existing = new Set(entities.map((e) => e.name));
const missing = names.filter((n) => !existing.has(n));
const present = names.filter((n) => existing.has(n));
if (missing.length) {
  await mcp.memory.create_entities({
    entities: missing.map((name) => ({ name, entityType: 'module', observations: ['needs review'] })),
  });
}
if (present.length) {
  await mcp.memory.add_observations({
    observations: present.map((entityName) => ({ entityName, contents: ['needs review'] })),
  });
}
return names;
