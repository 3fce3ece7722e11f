// Looks at 200 resources, and names those whose number is a multiple of 25.
const numbers = Array.from({ length: 200 }, (_, index) => index + 1);
const all = await Promise.all(numbers.map(async (resourceId) => {
  const blocks = await mcp.everything.getResourceReference({ resourceType: 'Text', resourceId });
  return blocks.find((block) => block.type === 'resource').resource as { uri: string; text: string };
}));
const found = all.filter(({ text }) => Number(/Resource (\d+)/.exec(text)[1]) % 25 === 0);
return { read: all.length, found: found.map(({ uri }) => uri.split('/').pop()) };
