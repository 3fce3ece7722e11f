const { content } = await mcp.files.list_directory({ path: 'DATA' });
const folders = [...content.matchAll(/^\[DIR\]\s+(.+?)\s*$/gm)].map((m) => m[1]);
const answers = [];
for (let i = 0; i < folders.length; i += 4) {
  const batch = folders.slice(i, i + 4);
  answers.push(...await Promise.all(batch.map((message) => mcp.everything.echo({ message }))));
}
return answers.map((a) => (typeof a === 'string' ? a : JSON.stringify(a))).join('; ');
