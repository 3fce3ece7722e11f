let error = null;
try {
  const bad: any = { a: 'two', b: 3 };
  const r = await mcp.everything['get-sum'](bad);
  console.log('did not fail', r);
} catch (e) {
  error = e.message.slice(0, 60);
}
const r = await mcp.everything['get-sum']({ a: 2, b: 3 });
const text = typeof r === 'string' ? r : JSON.stringify(r);
const sum = typeof r === 'number' ? r : Number(text.match(/-?\d+(?:\.\d+)?/g).pop());
return { error, sum };
