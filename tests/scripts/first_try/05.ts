const root = 'DATA';
const { content } = await mcp.files.list_directory({ path: root });
const modules = [...content.matchAll(/^\[DIR\]\s+(.+?)\s*$/gm)].map((m) => m[1]);
const perModule = await Promise.all(modules.map(async (module) => {
  const log = (await mcp.files.read_text_file({ path: `${root}/${module}/app.log` })).content;
  const events = [];
  for (const line of log.split('\n')) {
    const m = line.match(/^(\S+)\s.*\btook (\d+(?:\.\d+)?) ms/);
    if (m) events.push({ module, time: m[1], ms: Number(m[2]) });
  }
  return events;
}));
return perModule.flat().sort((a, b) => b.ms - a.ms).slice(0, 10);
