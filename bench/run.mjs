// `npm run bench` builds the package, then prints speed, the path of one lock, size, waiting, far endpoints and a webhook's delivery. To print
// one of them: `npm run bench -- speed|path|size|sync|waiting|far|delivery`. `npm run bench -- load` puts the README's
// webhook under load; `durable` measures a lock server; `peers` and `scale` measure other packages beside this one. `--svg` writes a chart of sync and waiting into docs/images.
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { plot } from "./plot.mjs";

const parts = ["speed", "path", "size", "sync", "waiting", "far", "delivery"];
const { positionals, values } = parseArgs({ allowPositionals: true, options: { svg: { type: "boolean" } } });
const [only] = positionals;
const all = [...parts, "load", "durable", "peers", "scale"];
if (only && !all.includes(only)) {
  console.error(`usage: npm run bench [-- ${all.join("|")}] [--svg]`);
  process.exit(2);
}
execFileSync(process.execPath, ["tools/build.mjs"], { stdio: "inherit" });
for (const part of only ? [only] : parts) {
  const { print } = await import(`./${part}.mjs`);
  const chart = await print();
  if (!chart || !values.svg) continue;
  mkdirSync("docs/images", { recursive: true });
  writeFileSync(`docs/images/${part}.svg`, plot(chart));
  console.log(`\nwritten: docs/images/${part}.svg`);
}
