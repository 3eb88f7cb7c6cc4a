// Writes the SHA-1 of every Lua script into the sources. Run it after editing a script: `node scripts/script-hashes.mjs`.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";

const source = new URL("../src/", import.meta.url);
const read = (name) => readFileSync(new URL(name, source), "utf8");
const flag = JSON.parse(/upstashFlag = (".*");/.exec(read("redis/script.ts"))[1]);
const cell = /source: `([^`]*)`/.exec(read("redis/cell-script.ts"))[1];
const whole = (script) => script.replace(/\$\{cellScript\.source\}/, () => cell);
const sha = (script) => createHash("sha1").update(script).digest("hex");

for (const name of readdirSync(source, { recursive: true })) {
  if (!name.endsWith(".ts")) continue;
  const text = read(name);
  const written = text.replace(
    /source: `([^`]*)`,\n {2}sha: \{[^}]*\}/g,
    (_, script) =>
      `source: \`${script}\`,\n  sha: {\n    redis: "${sha(whole(script))}",\n    upstash: "${sha(flag + whole(script))}",\n  }`,
  );
  if (written !== text) writeFileSync(new URL(name, source), written);
}
