import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { project } from "../../tools/load.mjs";

const own = fileURLToPath(new URL("../../src/index.ts", import.meta.url));
const wakeUp = fileURLToPath(new URL("../../src/wake-up/index.ts", import.meta.url));

/** What a program imports to acquire a lock: the library, and the client that it needs. */
const programs = [
  ["redlock-edge", `export { Redlock } from ${JSON.stringify(own)};`],
  [
    "redlock-edge, wakeUp",
    `export { Redlock } from ${JSON.stringify(own)}; export { pubSub } from ${JSON.stringify(wakeUp)};`,
  ],
  ["@upstash/lock", `export { Lock } from "@upstash/lock"; export { Redis } from "@upstash/redis";`],
  ["redlock", `export { default } from "redlock"; export { Redis } from "ioredis";`],
  [
    "redis-semaphore",
    `export { Mutex, RedlockMutex } from "redis-semaphore"; export { Redis } from "ioredis";`,
  ],
  [
    "redlock-universal",
    `export { createLock, createRedlock, IoredisAdapter } from "redlock-universal"; export { Redis } from "ioredis";`,
  ],
];

/** The bytes of each program: bundled with all that it imports except Node's modules, minified, gzip level 9. */
export async function peerSizes() {
  return Promise.all(
    programs.map(async ([name, contents]) => {
      const { outputFiles } = await build({
        stdin: { contents, resolveDir: join(project, "bench") },
        bundle: true,
        minify: true,
        write: false,
        format: "esm",
        target: "es2022",
        platform: "node",
        logLevel: "error",
      });
      return { name, bytes: gzipSync(outputFiles[0].contents, { level: 9 }).length };
    }),
  );
}
