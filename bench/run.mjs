// `npm run bench` builds the package, then prints speed, the path of one lock, size, waiting, far endpoints and a webhook's delivery. To print
// one of them: `npm run bench -- speed|path|size|waiting|far|delivery`. `npm run bench -- load` puts the README's
// webhook under load; `durable` measures a lock server; `peers` and `scale` measure other packages beside this one.
import { execFileSync } from "node:child_process";
import process from "node:process";

const parts = ["speed", "path", "size", "waiting", "far", "delivery"];
const [only] = process.argv.slice(2);
const all = [...parts, "load", "durable", "peers", "scale"];
if (only && !all.includes(only)) {
  console.error(`usage: npm run bench [-- ${all.join("|")}]`);
  process.exit(2);
}
execFileSync(process.execPath, ["tools/build.mjs"], { stdio: "inherit" });
for (const part of only ? [only] : parts) {
  const { print } = await import(`./${part}.mjs`);
  await print();
}
