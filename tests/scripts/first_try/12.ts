try {
  const { content } = await mcp.files.read_text_file({ path: 'DATA/nothing.txt' });
  return { ok: true, content };
} catch (error) {
  return { ok: false, reason: error.message };
}
