const root = 'DATA';
const { content } = await mcp.files.list_directory({ path: root });
const modules = [...content.matchAll(/^\[DIR\]\s+(.+?)\s*$/gm)].map((m) => m[1]);
const rows = await Promise.all(modules.map(async (module) => {
  const log = (await mcp.files.read_text_file({ path: `${root}/${module}/app.log` })).content;
  return { module, errors: log.split('\n').filter((line) => /^\S+\s+ERROR\b/.test(line)).length };
}));
return rows.sort((a, b) => b.errors - a.errors || a.module.localeCompare(b.module)).slice(0, 3);
