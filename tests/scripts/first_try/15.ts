const root = 'DATA';
const { content } = await mcp.files.list_directory({ path: root });
const modules = [...content.matchAll(/^\[DIR\]\s+(.+?)\s*$/gm)].map((m) => m[1]);
const rows = await Promise.all(modules.map(async (module) => {
  const path = `${root}/${module}/README.md`;
  const text = (await mcp.files.read_text_file({ path })).content;
  const heading = text.split(/\r?\n/).find((line) => /^# /.test(line));
  if (heading && !heading.startsWith('# Module: ')) {
    await mcp.files.edit_file({
      path,
      edits: [{ oldText: heading, newText: heading.replace(/^# /, '# Module: ') }],
    });
  }
  const after = (await mcp.files.read_text_file({ path, head: 1 })).content;
  return [module, after.split('\n')[0].trim()];
}));
return Object.fromEntries(rows);
