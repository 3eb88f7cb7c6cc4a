// Writes the SHA-1 of every Lua script into src/scripts.ts. Run it after editing a script: `node scripts/script-hashes.mjs`.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";

const file = new URL("../src/scripts.ts", import.meta.url);
const text = readFileSync(file, "utf8");
const flag = JSON.parse(/upstashFlag = (".*");/.exec(text)[1]);
const sha = (source) => createHash("sha1").update(source).digest("hex");

const written = text.replace(
  /source: `([^`]*)`,\n {2}sha: \{[^}]*\}/g,
  (_, source) =>
    `source: \`${source}\`,\n  sha: {\n    redis: "${sha(source)}",\n    upstash: "${sha(flag + source)}",\n  }`,
);
writeFileSync(file, written);
