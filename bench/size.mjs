// Measures how much an import adds to a bundle: minified by esbuild, gzip level 9. Prints the rows of the
// table in bench/README.md.
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { project } from "../tools/load.mjs";
import { printHead, printRow } from "./table.mjs";

const core = { index: ["Redlock"] };
const idempotency = { ...core, idempotency: ["Idempotency"] };
const operators = { ...core, idempotency: ["Idempotency", "inspectKey", "forgetKey"] };
const sync = (...names) => ({ ...core, sync: names });

/** The rows: a label, the imports by entry, and the imports that the bundle already has. */
const rows = [
  ["a lock: `Redlock` and `endpointsFromEnv`", { index: ["Redlock", "endpointsFromEnv"] }],
  [
    "a webhook guard: these, `idempotent` and `stripe`",
    { index: ["Redlock", "endpointsFromEnv"], hono: ["idempotent"], webhooks: ["stripe"] },
  ],
  ["`Redlock`", core],
  ["`inspect` and `forceRelease`, over `Redlock`", { ...core, inspect: ["inspect", "forceRelease"] }, core],
  ["`handoff` and `resume`, over `Redlock`", { ...core, handoff: ["handoff", "resume"] }, core],
  ["`endpointsFromEnv`, over `Redlock`", { index: ["Redlock", "endpointsFromEnv"] }, core],
  ["`pubSub`, over `Redlock`", { ...core, "wake-up": ["pubSub"] }, core],
  ["`upstashEndpoint`, over `Redlock`", { index: ["Redlock", "upstashEndpoint"] }, core],
  ["`ioredisEndpoint`, over `Redlock`", { ...core, sockets: ["ioredisEndpoint"] }, core],
  ["`nodeRedisEndpoint`, over `Redlock`", { ...core, sockets: ["nodeRedisEndpoint"] }, core],
  ["`Idempotency`, over `Redlock`", idempotency, core],
  ["`inspectKey` and `forgetKey`, over the two", operators, idempotency],
  ["`withIdempotency`, over the two", { ...idempotency, http: ["withIdempotency"] }, idempotency],
  ["`idempotent` for Hono, over the two", { ...idempotency, hono: ["idempotent"] }, idempotency],
  ["`idempotentExpress`, over the two", { ...idempotency, node: ["idempotentExpress"] }, idempotency],
  ["`idempotentFastify`, over the two", { ...idempotency, node: ["idempotentFastify"] }, idempotency],
  ["`otel`, without `@opentelemetry/api`", { otel: ["otel"] }],
  ["all of `redlock-edge/webhooks`", { webhooks: ["*"] }],
  ["`stripe` alone", { webhooks: ["stripe"] }],
  ["`signatureProvider` alone", { "webhooks/custom": ["signatureProvider"] }],
  ["`onceInD1` alone", { inbox: ["onceInD1", "deliveryKey"] }],
  ["`onceInPostgres` alone", { inbox: ["onceInPostgres", "deliveryKey"] }],
  ["`onceInTransaction` alone", { inbox: ["onceInTransaction", "deliveryKey"] }],
  ["`Semaphore`, over `Redlock`", sync("Semaphore"), core],
  ["`ReadWriteLock`, over `Redlock`", sync("ReadWriteLock"), core],
  ["`ReentrantLock`, over `Redlock`", sync("ReentrantLock"), core],
  ["`FairLock`, over `Redlock`", sync("FairLock"), core],
  ["`once`, over `Redlock`", sync("once"), core],
  ["`debounce`, over `Redlock`", sync("debounce"), core],
  ["`singleton`, over `Redlock`", sync("singleton"), core],
  ["`refreshOnce`, over `Redlock`", sync("refreshOnce"), core],
  ["`CountDownLatch`, over `Redlock`", sync("CountDownLatch"), core],
  ["`Mailbox`, over `Redlock`", sync("Mailbox"), core],
  ["`durableEndpoint`, over `Redlock`", { ...core, "lock-server": ["durableEndpoint"] }, core],
  ["`LockServer` and `lockServerApp` alone", { "lock-server": ["LockServer", "lockServerApp"] }],
  ["`CyclicBarrier`, over `Redlock`", sync("CyclicBarrier"), core],
];

const sourceOf = (entry) => {
  if (entry === "lock-server") return "./lock-server/src/index.ts";
  return `./src/${entry === "index" ? "" : `${entry}/`}index.ts`;
};

/** Bytes of a bundle with these imports, gzipped. */
async function sizeOf(imports) {
  const lines = Object.entries(imports).map(([entry, names]) => {
    const path = sourceOf(entry);
    return names[0] === "*" ? `export * from "${path}";` : `export { ${names.join(", ")} } from "${path}";`;
  });
  const { outputFiles } = await build({
    stdin: { contents: lines.join("\n"), resolveDir: join(project), loader: "ts" },
    bundle: true,
    minify: true,
    write: false,
    format: "esm",
    target: "es2022",
    platform: "browser",
    external: ["hono", "hono/*", "@opentelemetry/api"],
    logLevel: "error",
  });
  return gzipSync(outputFiles[0].contents, { level: 9 }).length;
}

/**
 * The sizes of the table in bench/README.md.
 *
 * @returns {Promise<{ label: string, bytes: number }[]>}
 */
export async function sizes() {
  // Many rows are over the same imports.
  const known = new Map();
  const once = (imports) => {
    if (!known.has(imports)) known.set(imports, sizeOf(imports));
    return known.get(imports);
  };
  return Promise.all(
    rows.map(async ([label, imports, over]) => ({
      label,
      bytes: (await sizeOf(imports)) - (over ? await once(over) : 0),
    })),
  );
}

/** A size with three digits, such as 10.6 kB. */
export const kilobytes = (bytes) => `${(bytes / 1_000).toPrecision(3)} kB`;

export async function print() {
  printHead("What a bundle gains by an import, minified and gzipped", "import", "minified and gzipped");
  for (const { label, bytes } of await sizes()) printRow(label, kilobytes(bytes));
}
