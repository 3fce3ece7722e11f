// Follows a trail of notes, each of which names the next one, and collects the open questions.
const { folder } = input as { folder: string };
const questions: string[] = [];
let name: string | undefined = 'start';
let steps = 0;
while (name !== undefined) {
  const { content } = await mcp.filesystem.read_text_file({ path: `${folder}/${name}.txt` });
  steps += 1;
  if (content.includes('state: open')) questions.push(/question: (.*)/.exec(content)[1]);
  name = /next: (\w+)/.exec(content)?.[1];
}
return { steps, questions };
