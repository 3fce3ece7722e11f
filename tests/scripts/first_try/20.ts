const { min, max } = input;
const text = (await mcp.files.read_text_file({ path: 'DATA/people.csv' })).content;
const [header, ...lines] = text.split(/\r?\n/).filter((line) => line.trim());
const cols = header.split(',').map((c) => c.trim());
const people = lines.map((line) => {
  const cells = line.split(',').map((c) => c.trim());
  return {
    name: cells[cols.indexOf('name')],
    team: cells[cols.indexOf('team')],
    age: Number(cells[cols.indexOf('age')]),
  };
});
const groups: Record<string, string[]> = {};
for (const p of people.filter((p) => p.age >= min && p.age <= max).sort((a, b) => a.age - b.age)) {
  (groups[p.team] ??= []).push(p.name);
}
return groups;
