// Validates a JSON file: node validate.mjs SCHEMA FILE. Prints the violations and exits with 1
// where there are any.
import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";

const [schema, value] = process.argv.slice(2).map((file) => JSON.parse(readFileSync(file, "utf8")));
const validate = new Ajv2020({ allErrors: true, strict: false, validateFormats: false }).compile(
  schema,
);
if (!validate(value)) {
  for (const { instancePath, message } of validate.errors)
    console.log(`${instancePath}: ${message}`);
  process.exitCode = 1;
}
