import { execFile } from "node:child_process";
import { join } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type LocalEndpoints, start } from "../../local/src/index.ts";
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
const parts = partsOf(programs, 4);

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

  const left: (readonly string[])[] = [];
  it.for(parts)("run, and print what the page says: part $part", async ({ chosen }, { signal }) => {
    const { reports, left: uncalled } = await run(
      chosen.filter(({ text }) => sockets !== undefined || !/REDIS_URL/.test(text)),
      signal,
    );
    left.push(uncalled);
    const wrong = reports.filter(({ program, printed, error }) => {
      return error !== undefined || (program.output !== undefined && program.output !== printed);
    });
    expect(
      wrong.map(({ program: { page, line, output }, ...rest }) => ({ page, line, output, ...rest })),
    ).toEqual([]);
  });

  it("export all that calls.mjs calls", () => {
    expect(left).toHaveLength(parts.length);
    expect(left.reduce((some, others) => some.filter((name) => others.includes(name)))).toEqual([]);
  });
});

/** Programs of one page stay together. */
function partsOf(all: readonly Program[], count: number): { part: number; chosen: readonly Program[] }[] {
  const pages = [...new Set(all.map(({ page }) => page))];
  return Array.from({ length: count }, (_, part) => ({
    part: part + 1,
    chosen: all.filter(({ page }) => pages.indexOf(page) % count === part),
  }));
}

interface Report {
  readonly program: Program;
  readonly printed: string;
  readonly error?: string;
}

/** Runs programs in one process, one after another. `left`: what calls.mjs would call, but none of them exports. */
async function run(
  chosen: readonly Program[],
  signal: AbortSignal,
): Promise<{ reports: Report[]; left: string[] }> {
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
  const built = (path: string) => join(outdir, path.replace(/\.\w+$/, ".js"));
  const task = {
    programs: chosen.map(({ path, page, language }) => ({ program: built(path), page, language })),
    endpoints: local.endpoints.map(({ url, token }) => ({ url, token })),
  };
  const [{ url, token }] = local.endpoints;
  const redisUrl = sockets?.endpoints[0]?.redisUrl;
  const single = { UPSTASH_REDIS_REST_URL: url, UPSTASH_REDIS_REST_TOKEN: token };
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [join("test", "docs", "run-programs.mjs"), JSON.stringify(task)],
    {
      signal,
      env: {
        ...process.env,
        ...local.env(),
        ...single,
        ...postgres?.env,
        ...(redisUrl && { REDIS_URL: redisUrl }),
        ...variables,
      },
    },
  );
  const { reports, left } = JSON.parse(stdout.split("\n").at(-1)!) as {
    reports: { printed: string; error?: string }[];
    left: string[];
  };
  return { reports: reports.map((report, index) => ({ ...report, program: chosen[index]! })), left };
}

const variables = {
  // Any free port: other tests run at the same time.
  PORT: "0",
  STRIPE_WEBHOOK_SECRET: "whsec_c3RyaXBl",
  GITHUB_WEBHOOK_SECRET: "github-secret",
};
