const root = 'DATA';
const { content } = await mcp.files.list_directory({ path: root });
const modules = [...content.matchAll(/^\[DIR\]\s+(.+?)\s*$/gm)].map((m) => m[1]);
const pkgs = await Promise.all(modules.map(async (m) => {
  const file = await mcp.files.read_text_file({ path: `${root}/${m}/package.json` });
  return { module: m, pkg: JSON.parse(file.content) };
}));
// a package's own name may differ from its folder's
const moduleOf = new Map(pkgs.map(({ module, pkg }) => [pkg.name ?? module, module]));
const entities = pkgs.map(({ module, pkg }) => ({
  name: module, entityType: 'module', observations: [`version ${pkg.version}`],
}));
const relations = pkgs.flatMap(({ module, pkg }) =>
  Object.keys(pkg.dependencies ?? {}).map((dep) => ({
    from: module, to: moduleOf.get(dep) ?? dep, relationType: 'depends on',
  })));
await mcp.memory.create_entities({ entities });
await mcp.memory.create_relations({ relations });
const graph = await mcp.memory.read_graph();
return { entities: graph.entities.length, relations: graph.relations.length };
