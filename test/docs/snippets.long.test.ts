import { execFile } from "node:child_process";
import { join } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type LocalEndpoints, start } from "../../local/src/index.ts";
import { startNode } from "../examples/node-process.ts";
import type { Project } from "../support/packed.ts";
import { type Postgres, postgresPrograms, startPostgres } from "../support/postgres.ts";
import { openRealEndpoints, redisServer } from "../support/redis-servers.ts";
import { compile, openProject, resolutions } from "./compile.ts";
import { allPrograms, type Program } from "./programs.ts";

// Every TypeScript and JavaScript block of every page, as a reader pastes it: compiled against the packed package in a
// project outside the repository, and run against local endpoints.

// Processes start slowly on a busy machine.
vi.setConfig({ testTimeout: 90_000 });

const programs = allPrograms();

let project: Project;
let local: LocalEndpoints;
let postgres: Postgres | undefined;
let sockets: LocalEndpoints | undefined;
beforeAll(async () => {
  [project, local, postgres, sockets] = await Promise.all([
    openProject(programs),
    start({ count: 3, engine: "embedded" }),
    postgresPrograms === undefined ? undefined : startPostgres(),
    redisServer === undefined ? undefined : openRealEndpoints(1),
  ]);
}, 120_000);
afterAll(async () => {
  await postgres?.close();
  await sockets?.close();
  await local.close();
  project.remove();
});

describe("the programs of all pages", () => {
  it.each(resolutions)("compile under strict, module resolution %s", async (resolution) => {
    expect(programs.length).toBeGreaterThan(20);
    expect(await compile(project, programs, resolution)).toEqual([]);
  });

  it("run, print what the page says, and export all that calls.mjs calls", async ({ signal }) => {
    const chosen = programs.filter(({ text }) => sockets !== undefined || !/REDIS_URL/.test(text));
    const { reports, left } = await run(chosen, signal);
    expect(reports.length).toBe(chosen.length);
    expect(
      reports.flatMap(({ printed, error }, index) => {
        const { page, line, output = printed } = chosen[index]!;
        return error === undefined && printed === output ? [] : [{ page, line, output, printed, error }];
      }),
    ).toEqual([]);
    expect(left).toEqual([]);
  });

  it.skipIf(redisServer === undefined)("end by themselves, if they open a client of a Redis", async () => {
    const chosen = programs.filter(({ text }) => /REDIS_URL/.test(text) && !/^export /m.test(text));
    expect(chosen.length).toBeGreaterThan(1);
    const built = await buildAll(chosen);
    const env = { REDIS_URL: sockets!.endpoints[0]!.redisUrl! };
    for (const { page, line, path } of chosen) {
      const { ended, output } = startNode([built(path)], env);
      expect(await ended, `${page}:${line}: ${output()}`).toBe(0);
    }
  });
});

interface Report {
  readonly printed: string;
  readonly error?: string;
}

/** Runs programs in one process, one after another. `left`: what calls.mjs would call, but none of them exports. */
async function run(
  chosen: readonly Program[],
  signal: AbortSignal,
): Promise<{ reports: Report[]; left: string[] }> {
  const built = await buildAll(chosen);
  const task = {
    programs: chosen.map(({ path, page, language }) => ({ program: built(path), page, language })),
    endpoints: local.endpoints.map(({ url, token }) => ({ url, token })),
  };
  const [{ url, token }] = local.endpoints;
  const env = {
    ...process.env,
    ...local.env(),
    UPSTASH_REDIS_REST_URL: url,
    UPSTASH_REDIS_REST_TOKEN: token,
    ...postgres?.env,
    ...(sockets && { REDIS_URL: sockets.endpoints[0]?.redisUrl }),
    ...variables,
  };
  const args = ["test/docs/run-programs.mjs", JSON.stringify(task)];
  const { stdout } = await promisify(execFile)(process.execPath, args, { signal, env }).catch(
    (error: { stderr?: string }) => {
      // The program that it names last hangs, or has ended the process.
      console.error(error.stderr);
      throw error;
    },
  );
  return JSON.parse(stdout.split("\n").at(-1)!);
}

/** Makes JavaScript of programs, and returns where that of each is. */
async function buildAll(chosen: readonly Program[]): Promise<(path: string) => string> {
  const outdir = join(project.folder, "run");
  await build({
    entryPoints: chosen.map(({ path }) => join(project.folder, path)),
    outdir,
    outbase: project.folder,
    format: "esm",
    // Node 20 has no `await using`.
    target: "node20",
    bundle: false,
  });
  return (path) => join(outdir, path.replace(/\.\w+$/, ".js"));
}

const variables = {
  // Any free port: other tests run at the same time.
  PORT: "0",
  STRIPE_WEBHOOK_SECRET: "whsec_c3RyaXBl",
  GITHUB_WEBHOOK_SECRET: "github-secret",
};
