// Servers of this machine, and what `redlock-edge doctor --conformance` finds at each: for the table in docs/platforms.md.

import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { type LocalEndpoints, start } from "../local/src/index.ts";
import { type Answer, judge } from "../src/cli/conformance-advice.ts";
import { examineConformance } from "../src/cli/conformance-examine.ts";
import { needs, requirements } from "../src/cli/conformance-table.ts";
import type { Dialect, HttpEndpointOptions } from "../src/index.ts";
import { systemRuntime } from "../src/runtime.ts";
import { redisServer } from "../test/support/programs.ts";
import { startServerlessRedisHttp } from "../test/support/serverless-redis-http.ts";
import { startWorkerd, token } from "./lock-servers.ts";

/** A server, as a column of the table. */
export interface Column {
  readonly title: string;
  /** Whether it is a redis-server, or in front of one. */
  readonly isRedis?: boolean;
  open(): Promise<Opened>;
}

interface Opened {
  readonly options: HttpEndpointOptions;
  close(): Promise<unknown>;
}

/** What was found, by label; undefined: it was not run. */
export type Answers = Readonly<Record<string, Answer>> | undefined;

/** The first two numbers of the version of redis-server; undefined where there is none. */
export const redisVersion: string | undefined =
  redisServer && /v=(\d+\.\d+)/.exec(execFileSync(redisServer, ["--version"], { encoding: "utf8" }))?.[1];

/** The columns that this machine can run, if it has redis-server. */
export const columns: readonly Column[] = [
  { title: `Redis ${redisVersion}`, isRedis: true, open: () => local("redis", "redis") },
  ...(["redis", "redis-8.4", "upstash"] as const).map((dialect) => ({
    title: `embedded, ${dialect}`,
    open: () => local("embedded", dialect),
  })),
  { title: "lock server", open: lockServer },
  { title: "serverless-redis-http, by its source", isRedis: true, open: gateway },
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
export async function answersOf(options: HttpEndpointOptions): Promise<NonNullable<Answers>> {
  const { signal: stop } = new AbortController();
  const settings = { prefix: "p", timeout: 5_000, id: randomUUID(), stop, runtime: systemRuntime };
  const [examined] = await examineConformance([options], settings);
  return Object.fromEntries(
    judge(examined!).rows.map(({ need, answer }) => [requirements[need].label, answer]),
  );
}

/** The table in Markdown. */
export function tableOf(found: readonly { readonly title: string; readonly answers: Answers }[]): string[] {
  const titles = ["what", ...found.map(({ title }) => title), "without it"];
  const rows = needs.map((need) => {
    const { label, level, without } = requirements[need];
    return [label, ...found.map(({ answers }) => answers?.[label] ?? "not run"), `${level}: ${without}`];
  });
  return [titles, titles.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`);
}

/** A column of the table in a page, by label. */
export function columnIn(page: string, title: string): Record<string, string> {
  const lines = page.split("\n").map((line) => line.split(" | ").map((cell) => cell.replace(/^\| /, "")));
  const head = lines.findIndex((cells) => cells[0] === "what" && cells.includes(title));
  if (head < 0) return {};
  const rows = lines.slice(head + 2, head + 2 + needs.length);
  return Object.fromEntries(rows.map((cells) => [cells[0], cells[lines[head]!.indexOf(title)]]));
}
