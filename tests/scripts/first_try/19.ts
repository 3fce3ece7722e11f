const { content } = await mcp.files.directory_tree({ path: 'DATA' });
const tree = JSON.parse(content);
const lines = [];
const walk = (entries, depth) => {
  for (const e of entries) {
    lines.push('  '.repeat(depth) + e.name + (e.type === 'directory' ? '/' : ''));
    if (e.children && depth < 1) walk(e.children, depth + 1);
  }
};
walk(Array.isArray(tree) ? tree : tree.children ?? [tree], 0);
return lines.join('\n');
