// Servers of this machine, and what `redlock-edge doctor --conformance` finds at each: for the table in docs/platforms.md.

import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { type LocalEndpoints, start } from "../../local/src/index.ts";
import { type Answer, rowsOf } from "../../src/cli/doctor/report.ts";
import { questionsOf, requirements } from "../../src/cli/doctor/requirements.ts";
import { examine, Session } from "../../src/cli/doctor/session.ts";
import { type Dialect, type HttpEndpointOptions, httpEndpoint } from "../../src/index.ts";
import { systemRuntime } from "../../src/runtime.ts";
import { redisServer } from "../../test/support/programs.ts";
import { startServerlessRedisHttp } from "../../test/support/serverless-redis-http.ts";
import { startWorkerd, token } from "../../tools/lock-servers.ts";

/** A server, as the table names it. */
export interface Column {
  readonly title: string;
  open(): Promise<Opened>;
}

interface Opened {
  readonly options: HttpEndpointOptions;
  close(): Promise<unknown>;
}

/** What was found, by label. */
export type Answers = Readonly<Record<string, Answer>>;

/** The first two numbers of the version of redis-server; undefined where there is none. */
const redisVersion: string | undefined =
  redisServer && /v=(\d+\.\d+)/.exec(execFileSync(redisServer, ["--version"], { encoding: "utf8" }))?.[1];

/** The servers that this machine can run, if it has redis-server. */
export const columns: readonly Column[] = [
  { title: `Redis ${redisVersion}`, open: () => local("redis", "redis") },
  ...(["redis", "redis-8.4", "upstash"] as const).map((dialect) => ({
    title: `embedded ${dialect}`,
    open: () => local("embedded", dialect),
  })),
  { title: "lock server", open: lockServer },
  { title: "serverless-redis-http", open: gateway },
];

const optionsOf = ({ endpoints: [{ url, token }] }: LocalEndpoints, dialect: Dialect) => ({
  url,
  token,
  dialect,
});

async function local(engine: "redis" | "embedded", dialect: Dialect): Promise<Opened> {
  const endpoints = await start({ count: 1, engine, dialect });
  return { options: optionsOf(endpoints, dialect), close: endpoints.close };
}

async function gateway(): Promise<Opened> {
  const endpoints = await start({ count: 1, engine: "redis", dialect: "redis" });
  const proxy = await startServerlessRedisHttp(endpoints.endpoints[0]);
  return {
    options: { ...optionsOf(endpoints, "redis"), url: proxy.url },
    close: () => proxy.close().then(endpoints.close),
  };
}

async function lockServer(): Promise<Opened> {
  const { url, worker } = await startWorkerd();
  return { options: { url, token, dialect: "redis-8.4" }, close: () => worker.dispose() };
}

/** What doctor finds at an endpoint. */
export async function answersOf(options: HttpEndpointOptions): Promise<Answers> {
  const { signal: stop } = new AbortController();
  const settings = { prefix: "p", timeout: 5_000, id: randomUUID(), stop, runtime: systemRuntime };
  const session = new Session(() => httpEndpoint(options), settings);
  const [examined] = await examine([session], questionsOf(true));
  const rows = rowsOf(examined!);
  return Object.fromEntries(rows.map(({ need, answer }) => [requirements[need]!.label, answer]));
}

/** The tables in Markdown: all needs by their level, and those that not every server has. */
export function tablesOf(found: readonly { readonly title: string; readonly answers: Answers }[]): string {
  const levels = (["error", "warning", "note"] as const).map((level) => {
    const labels = Object.values(requirements).filter((requirement) => requirement.level === level);
    return [level, labels.map(({ label }) => label).join("; ")];
  });
  const rows = Object.values(requirements).map(({ label, without }) => {
    const others = [...new Set(found.map(({ answers }) => answers[label]!))].filter(
      (answer) => answer !== "yes",
    );
    const cell = others.map((answer) => {
      const titles = found.filter(({ answers }) => answers[label] === answer).map(({ title }) => title);
      return `${answer}: ${titles.join(", ")}`;
    });
    return [label, cell.join("; "), without];
  });
  const lacking = rows.filter(([, answers]) => answers !== "");
  return [table(["without it", "what"], levels), table(["what", "answers", "without it"], lacking)].join(
    "\n\n",
  );
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}
