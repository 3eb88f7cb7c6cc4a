// `npm run bench` builds the package, then prints speed, size, waiting, far endpoints and a webhook's delivery. To print one of them:
// `npm run bench -- speed|size|sync|waiting|far|delivery`.
import { execFileSync } from "node:child_process";

execFileSync(process.execPath, ["scripts/build.mjs"], { stdio: "inherit" });
const only = process.argv[2];
const parts = ["speed", "size", "sync", "waiting", "far", "delivery"];
if (only && !parts.includes(only)) {
  console.error(`usage: npm run bench [-- ${parts.join("|")}]`);
  process.exit(2);
}
for (const part of only ? [only] : parts) {
  const { print } = await import(`./${part}.mjs`);
  await print();
}
