import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { build } from "esbuild";
import { Miniflare } from "miniflare";
import { project } from "./load.mjs";

/**
 * Random webhook secrets for one local run, of the senders in deliveries.mjs.
 *
 * @returns {{ GITHUB_WEBHOOK_SECRET: string, STANDARD_WEBHOOKS_SECRET: string, STRIPE_WEBHOOK_SECRET: string }}
 *
 * @example
 * const bindings = { ...randomSecrets(), ...local.env() };
 */
export function randomSecrets() {
  return {
    GITHUB_WEBHOOK_SECRET: randomBytes(20).toString("hex"),
    STANDARD_WEBHOOKS_SECRET: `whsec_${randomBytes(32).toString("base64")}`,
    STRIPE_WEBHOOK_SECRET: `whsec_${randomBytes(32).toString("hex")}`,
  };
}

/**
 * @typedef {object} LocalWorker
 * @property {string} url its address, without a trailing slash
 * @property {any} database its D1 database, a `D1Database`; undefined without one
 * @property {() => Promise<void>} close stops workerd and deletes the database; may be called more than once
 */

/**
 * Starts the Worker of worker/ in workerd, on loopback, with a D1 database whose tables are empty.
 *
 * @param {object} options
 * @param {Record<string, string>} options.bindings secrets and endpoints: see worker/bindings.ts
 * @param {number} [options.port] default 0: a free port
 * @param {boolean} [options.withDatabase] default true
 * @param {(text: string) => void} [options.onLog] called with the Worker's console output; default: it is discarded
 * @returns {Promise<LocalWorker>}
 *
 * @example
 * const worker = await startWorker({ bindings: { ...randomSecrets(), ...local.env() } });
 * await fetch(`${worker.url}/healthz`);
 * await worker.close();
 */
export async function startWorker({ bindings, port = 0, withDatabase = true, onLog = () => undefined }) {
  const configuration = await readFile(join(project, "wrangler.toml"), "utf8");
  const [, compatibilityDate] = /^compatibility_date = "(.+)"$/m.exec(configuration) ?? [];
  const { outputFiles } = await build({
    absWorkingDir: project,
    entryPoints: ["worker/index.ts"],
    bundle: true,
    write: false,
    format: "esm",
    target: "es2022",
    conditions: ["workerd", "worker", "browser"],
    logLevel: "silent",
  });
  const directory = await mkdtemp(join(tmpdir(), "redlock-edge-worker-"));
  const miniflare = open(directory, {
    name: "redlock-edge",
    modules: true,
    script: outputFiles[0].text,
    compatibilityDate,
    bindings,
    ...(withDatabase && { d1Databases: ["DB"] }),
    host: "127.0.0.1",
    port,
    // Otherwise Miniflare requests its location from a server of Cloudflare.
    cf: false,
    telemetry: { enabled: false },
    handleRuntimeStdio(stdout, stderr) {
      for (const stream of [stdout, stderr]) stream.setEncoding("utf8").on("data", onLog);
    },
  });
  async function stop() {
    await miniflare.dispose();
    await rm(directory, { recursive: true, force: true, maxRetries: 5 });
  }
  try {
    const { origin } = await miniflare.ready;
    const database = withDatabase ? await miniflare.getD1Database("DB") : undefined;
    if (database) await createTables(database);
    let closing;
    const close = () => {
      closing ??= stop();
      return closing;
    };
    return { url: origin, database, close };
  } catch (error) {
    await stop();
    throw error;
  }
}

/**
 * Creates a Miniflare whose temporary files are in `directory`, because it does not wait until they are deleted. Also
 * removes its signal handlers, which exit at once, if the program has handlers of its own and so stops by itself.
 */
function open(directory, options) {
  const { TMPDIR } = process.env;
  const signals = ["SIGINT", "SIGTERM"].filter((signal) => process.listenerCount(signal) > 0);
  const before = signals.flatMap((signal) => process.listeners(signal));
  process.env.TMPDIR = directory;
  try {
    return new Miniflare(options);
  } finally {
    if (TMPDIR === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = TMPDIR;
    for (const signal of signals) {
      for (const listener of process.listeners(signal)) {
        if (!before.includes(listener)) process.removeListener(signal, listener);
      }
    }
  }
}

/**
 * Applies worker/schema.sql, in one transaction.
 *
 * @param {any} database a `D1Database`; tables that exist already stay
 *
 * @example
 * await createTables(worker.database);
 */
export async function createTables(database) {
  const schema = await readFile(join(project, "worker", "schema.sql"), "utf8");
  // Split at empty lines, not at semicolons: a trigger contains semicolons.
  const statements = schema.replace(/^--.*\n/gm, "").split("\n\n");
  const trimmed = statements.map((statement) => statement.trim()).filter(Boolean);
  await database.batch(trimmed.map((statement) => database.prepare(statement)));
}
