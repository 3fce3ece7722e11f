const root = 'DATA';
const { content } = await mcp.files.list_directory({ path: root });
const modules = [...content.matchAll(/^\[DIR\]\s+(.+?)\s*$/gm)].map((m) => m[1]);
const rows = await Promise.all(modules.map(async (m) => {
  const file = await mcp.files.read_text_file({ path: `${root}/${m}/package.json` });
  const pkg = JSON.parse(file.content);
  return [m, Object.keys(pkg.dependencies ?? {}).length];
}));
return Object.fromEntries(rows);
