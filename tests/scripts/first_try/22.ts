const def = await tools.describe('everything/trigger-long-running-operation');
const schema = def.inputSchema ?? def.input_schema ?? def.tool?.inputSchema;
if (!schema) {
  console.log(def);
  throw new Error('no inputSchema in the definition');
}
return Object.keys(schema.properties ?? {});
