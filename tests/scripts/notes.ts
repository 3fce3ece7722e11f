// Finds the overdue invoices among the notes of a folder, and adds up what is owed.
const { folder } = input as { folder: string };
const listed = (await mcp.filesystem.list_directory({ path: folder })).content as string;
const paths = listed.split('\n').map((line) => `${folder}/${line.replace(/^\[FILE\] /, '')}`);
const batches = [];
while (paths.length > 0) batches.push(paths.splice(0, 20));
const texts = await Promise.all(batches.map(async (paths) =>
  (await mcp.filesystem.read_multiple_files({ paths })).content as string));
const overdue = texts.join('\n').match(/overdue: \d+/g) ?? [];
const owed = overdue.reduce((sum, found) => sum + Number(found.slice('overdue: '.length)), 0);
return { overdue: overdue.length, owed };
