const root = 'DATA';
const { content } = await mcp.files.list_directory({ path: root });
const modules = [...content.matchAll(/^\[DIR\]\s+(.+?)\s*$/gm)].map((m) => m[1]);
const pkgs = await Promise.all(modules.map(async (m) => {
  const pkg = JSON.parse((await mcp.files.read_text_file({ path: `${root}/${m}/package.json` })).content);
  return { name: pkg.name ?? m, module: m, deps: new Set(Object.keys(pkg.dependencies ?? {})) };
}));
const pairs = [];
for (let i = 0; i < pkgs.length; i++) {
  for (let j = i + 1; j < pkgs.length; j++) {
    const [a, b] = [pkgs[i], pkgs[j]];
    const on = (x, y) => x.deps.has(y.name) || x.deps.has(y.module);
    if (on(a, b) && on(b, a)) pairs.push([a.module, b.module]);
  }
}
return pairs;
