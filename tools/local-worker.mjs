import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { Miniflare } from "miniflare";
import { bundle } from "./bundle.mjs";
import { project } from "./load.mjs";
import { databaseWorker } from "./local-database.mjs";

/**
 * Random secrets for one local run: of the senders, and of the page.
 *
 * @returns {{ GITHUB_WEBHOOK_SECRET: string, STANDARD_WEBHOOKS_SECRET: string, STRIPE_WEBHOOK_SECRET: string, JOURNAL_SECRET: string }}
 *
 * @example
 * const bindings = { ...randomSecrets(), ...local.env() };
 */
export function randomSecrets() {
  return {
    GITHUB_WEBHOOK_SECRET: randomBytes(20).toString("hex"),
    STANDARD_WEBHOOKS_SECRET: `whsec_${randomBytes(32).toString("base64")}`,
    STRIPE_WEBHOOK_SECRET: `whsec_${randomBytes(32).toString("hex")}`,
    JOURNAL_SECRET: randomBytes(32).toString("hex"),
  };
}

/**
 * @typedef {object} LocalWorker
 * @property {string} url its address, without a trailing slash
 * @property {any} database its D1 database, with `prepare` and `batch` of a `D1Database`, until the next restart
 * @property {(bindings: Record<string, string>) => Promise<void>} restart kills workerd, whatever it is doing, and starts
 *   it again with these bindings, at the same address and with the same database
 * @property {() => Promise<void>} close stops workerd and deletes the database; may be called more than once
 */

/**
 * Starts the Worker of worker/ in workerd, on loopback, with a D1 database whose tables are empty.
 *
 * @param {object} options
 * @param {Record<string, string>} options.bindings secrets and endpoints: see worker/bindings.ts
 * @param {number} [options.port] default 0: a free port
 * @param {(text: string) => void} [options.onLog] called with the Worker's console output; default: it is discarded
 * @returns {Promise<LocalWorker>}
 *
 * @example
 * const worker = await startWorker({ bindings: { ...randomSecrets(), ...local.env() } });
 * await fetch(`${worker.url}/healthz`);
 * await worker.close();
 */
export async function startWorker(options) {
  const { bindings, port = 0, onLog = () => undefined } = options;
  const configuration = await readFile(join(project, "wrangler.toml"), "utf8");
  const [, compatibilityDate] = /^compatibility_date = "(.+)"$/m.exec(configuration) ?? [];
  const script = await bundle("worker/index.ts", {
    conditions: ["workerd", "worker", "browser"],
    // As the rule in wrangler.toml says.
    loader: { ".css": "text" },
    logLevel: "silent",
  });
  const directory = await mkdtemp(join(tmpdir(), "redlock-edge-worker-"));
  const shared = { compatibilityDate, d1Databases: ["DB"] };
  const reader = databaseWorker(shared);
  const optionsOf = (given, at) => ({
    workers: [{ ...shared, name: "redlock-edge", modules: true, script, bindings: given }, reader.worker],
    // In files, so that a restart finds what was committed.
    d1Persist: join(directory, "d1"),
    host: "127.0.0.1",
    port: at,
    // Otherwise Miniflare requests its location from a server of Cloudflare.
    cf: false,
    telemetry: { enabled: false },
    handleRuntimeStdio(stdout, stderr) {
      for (const stream of [stdout, stderr]) stream.setEncoding("utf8").on("data", onLog);
    },
  });
  let miniflare = open(directory, optionsOf(bindings, port));
  async function stop() {
    await miniflare.dispose();
    await rm(directory, { recursive: true, force: true, maxRetries: 5 });
  }
  try {
    const { origin, port: used } = await miniflare.ready;
    let database = await reader.open(miniflare);
    await createTables(database);
    let closing;
    return {
      url: origin,
      get database() {
        return database;
      },
      async restart(given) {
        // This kills workerd with SIGKILL.
        await miniflare.dispose();
        miniflare = open(directory, optionsOf(given, Number(used)));
        await miniflare.ready;
        database = await reader.open(miniflare);
      },
      close() {
        closing ??= stop();
        return closing;
      },
    };
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
 * @param {any} database a `D1Database`
 *
 * @example
 * await createTables(worker.database);
 */
export async function createTables(database) {
  const schema = await readFile(join(project, "worker", "schema.sql"), "utf8");
  const statements = schema.replace(/^--.*\n/gm, "").split(";");
  const trimmed = statements.map((statement) => statement.trim()).filter(Boolean);
  await database.batch(trimmed.map((statement) => database.prepare(statement)));
}
