// `npm run bench` builds the package, then prints speed, size, waiting and a lock server. To print one of them:
// `npm run bench -- speed|size|waiting|durable`.
import { execFileSync } from "node:child_process";
import process from "node:process";

const parts = ["speed", "size", "waiting", "durable"];
const [only] = process.argv.slice(2);
if (only && !parts.includes(only)) {
  console.error(`usage: npm run bench [-- ${parts.join("|")}]`);
  process.exit(2);
}
execFileSync(process.execPath, ["tools/build.mjs"], { stdio: "inherit" });
for (const part of only ? [only] : parts) {
  const { print } = await import(`./${part}.mjs`);
  await print();
}
