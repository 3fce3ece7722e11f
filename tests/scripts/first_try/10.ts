const root = 'DATA';
const { content } = await mcp.files.list_directory({ path: root });
const modules = [...content.matchAll(/^\[DIR\]\s+(.+?)\s*$/gm)].map((m) => m[1]);
const lines = await Promise.all(modules.map(async (module) => {
  const [pkgFile, logFile] = await Promise.all([
    mcp.files.read_text_file({ path: `${root}/${module}/package.json` }),
    mcp.files.read_text_file({ path: `${root}/${module}/app.log` }),
  ]);
  const pkg = JSON.parse(pkgFile.content);
  const warns = logFile.content.split('\n').filter((line) => /^\S+\s+WARN\b/.test(line)).length;
  return `- ${module} ${pkg.version}: ${warns} WARN lines`;
}));
const path = `${root}/report.md`;
await mcp.files.write_file({ path, content: `# Report\n\n${lines.join('\n')}\n` });
const info = (await mcp.files.get_file_info({ path })).content;
const size = info.match(/\bsize"?\s*:\s*(\d+)/i);
return size ? Number(size[1]) : info;
