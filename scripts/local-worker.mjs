import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { build } from "esbuild";
import { Miniflare } from "miniflare";
import { project } from "./load.mjs";

/**
 * Secrets that nobody can guess, for one local run.
 *
 * @returns {{ GITHUB_WEBHOOK_SECRET: string, STANDARD_WEBHOOKS_SECRET: string }}
 *
 * @example
 * const bindings = { ...randomSecrets(), ...local.env() };
 */
export function randomSecrets() {
  return {
    GITHUB_WEBHOOK_SECRET: randomBytes(20).toString("hex"),
    STANDARD_WEBHOOKS_SECRET: `whsec_${randomBytes(32).toString("base64")}`,
  };
}

/**
 * @typedef {object} LocalWorker
 * @property {string} url where it listens, without a slash at the end
 * @property {any} database its D1 database (a `D1Database`), to look at
 * @property {() => Promise<void>} close stops workerd and forgets the database; safe to call twice
 */

/**
 * Starts the Worker of worker/ in workerd, on loopback, with an empty D1 database that has the tables. Nothing
 * of it outlives `close`.
 *
 * @param {object} options
 * @param {Record<string, string>} options.bindings secrets and endpoints: see worker/bindings.ts
 * @param {number} [options.port] default 0: any free port
 * @param {boolean} [options.withDatabase] default true
 * @param {(line: string) => void} [options.onLog] hears what the Worker writes to its console; default: dropped
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
  const miniflare = new Miniflare({
    name: "redlock-edge",
    modules: true,
    script: outputFiles[0].text,
    compatibilityDate,
    bindings,
    ...(withDatabase && { d1Databases: ["DB"] }),
    host: "127.0.0.1",
    port,
    // Otherwise it asks a server of Cloudflare's where it is.
    cf: false,
    telemetry: { enabled: false },
    handleRuntimeStdio(stdout, stderr) {
      for (const stream of [stdout, stderr]) stream.setEncoding("utf8").on("data", onLog);
    },
  });
  try {
    const { origin } = await miniflare.ready;
    const database = withDatabase ? await miniflare.getD1Database("DB") : undefined;
    if (database) await createTables(database);
    let closing;
    const close = () => {
      closing ??= miniflare.dispose();
      return closing;
    };
    return { url: origin, database, close };
  } catch (error) {
    await miniflare.dispose();
    throw error;
  }
}

async function createTables(database) {
  const schema = await readFile(join(project, "worker", "schema.sql"), "utf8");
  // No semicolon stands in one of its comments, and every statement ends with one.
  const statements = schema.replace(/^--.*$/gm, "").split(";");
  const wanted = statements.map((statement) => statement.trim()).filter(Boolean);
  await database.batch(wanted.map((statement) => database.prepare(statement)));
}
