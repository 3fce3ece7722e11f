const text = (await mcp.files.read_text_file({ path: 'DATA/people.csv' })).content;
const [header, ...lines] = text.split(/\r?\n/).filter((line) => line.trim());
const cols = header.split(',').map((c) => c.trim());
const people = lines.map((line) => {
  const cells = line.split(',').map((c) => c.trim());
  return { team: cells[cols.indexOf('team')], age: Number(cells[cols.indexOf('age')]) };
});
const teams: Record<string, number[]> = {};
for (const { team, age } of people) (teams[team] ??= []).push(age);
return Object.entries(teams).sort(([a], [b]) => a.localeCompare(b)).map(([team, ages]) => ({
  team,
  people: ages.length,
  averageAge: (ages.reduce((s, a) => s + a, 0) / ages.length).toFixed(1),
}));
