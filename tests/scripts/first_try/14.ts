const result = await mcp.everything['get-tiny-image']();
// The result's type is any: find the image block wherever it is
const find = (value) => {
  if (!value || typeof value !== 'object') return undefined;
  if (value.type === 'image' && value.data) return value;
  for (const child of Object.values(value)) {
    const found = find(child);
    if (found) return found;
  }
  return undefined;
};
const image = find(result);
if (!image) {
  console.log(result);
  throw new Error('no image block in the result');
}
return { content: [
  { type: 'text', text: 'the logo' },
  { type: 'image', data: image.data, mimeType: image.mimeType ?? 'image/png' },
] };
