const root = 'DATA';
const { content } = await mcp.files.list_directory({ path: root });
const modules = [...content.matchAll(/^\[DIR\]\s+(.+?)\s*$/gm)].map((m) => m[1]);
const rows = await Promise.all(modules.map(async (m) => {
  const text = (await mcp.files.read_text_file({ path: `${root}/${m}/README.md` })).content;
  return [m, text.split('\n').filter((line) => line.includes('TODO')).length] as [string, number];
}));
return { total: rows.reduce((sum, [, n]) => sum + n, 0), byModule: Object.fromEntries(rows) };
