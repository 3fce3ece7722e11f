// Reads every package of a folder, and builds the graph of their dependencies in the memory.
const { folder } = input as { folder: string };
const listed = (await mcp.filesystem.list_directory({ path: folder })).content as string;
const names = listed.split('\n').map((line) => line.replace(/^\[FILE\] /, ''));
const packages = await Promise.all(names.map(async (name) => {
  const read = await mcp.filesystem.read_text_file({ path: `${folder}/${name}` });
  return JSON.parse(read.content) as { name: string; version: string; dependencies: string[] };
}));
await mcp.memory.create_entities({
  entities: packages.map(({ name, version }) =>
    ({ name, entityType: 'package', observations: [`version ${version}`] })),
});
const relations = packages.flatMap(({ name, dependencies }) =>
  dependencies.map((to) => ({ from: name, to, relationType: 'depends on' })));
await mcp.memory.create_relations({ relations });
return { packages: packages.length, relations: relations.length };
