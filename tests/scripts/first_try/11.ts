const root = 'DATA';
const { content } = await mcp.files.search_files({ path: root, pattern: '**/*.json' });
return content.split('\n')
  .map((line) => line.trim())
  .filter((line) => line.endsWith('.json'))
  .map((path) => {
    const at = path.indexOf(root + '/');
    return at >= 0 ? path.slice(at + root.length + 1) : path;
  })
  .sort();
