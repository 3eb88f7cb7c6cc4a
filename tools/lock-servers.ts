// Lock servers of `redlock-edge-server` in workerd, behind local endpoints with their faults and logs: for the demo, and for
// tests.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { Miniflare } from "miniflare";
import { type Backend, BackendGoneError } from "../local/src/rest/backend.ts";
import { LocalEndpoint } from "../local/src/rest/endpoint.ts";
import type { Store } from "../local/src/rest/store.ts";
import { ReplyError } from "../lock-server/src/engine/reply-error.ts";
import type { Reply } from "../lock-server/src/twins/twin.ts";
import { readEvents } from "../test/support/event-reader.ts";
import { bundle } from "./bundle.mjs";

/** The token of every lock server here. */
export const token = "token-of-lock-servers-on-this-machine";

/** A workerd with lock servers. */
export interface Workerd {
  readonly url: string;
  readonly worker: Miniflare;
}

/**
 * Starts one.
 *
 * @param options `entry`: its Worker, a path below the project. `persist`: the folder of its storage. Default: in memory
 */
export async function startWorkerd({
  entry = "tools/lock-servers-worker.ts",
  persist,
}: {
  readonly entry?: string;
  readonly persist?: string;
} = {}): Promise<Workerd> {
  // This module may itself run from a bundle elsewhere, which does not know where the project is.
  const script = await bundle(entry, { absWorkingDir: process.cwd() });
  const worker = new Miniflare({
    modules: true,
    script,
    compatibilityDate: "2026-04-01",
    bindings: { TOKEN: token },
    durableObjects: { LOCKS: { className: "LockServer", useSQLite: true } },
    ...(persist !== undefined && { durableObjectsPersist: persist }),
    cf: false,
    telemetry: { enabled: false },
  });
  return { url: (await worker.ready).href.replace(/\/$/, ""), worker };
}

/** A local endpoint in front of a backend. `more`: how its process is killed and started, if it has one. */
export function openEndpoint(
  number: number,
  backend: Backend,
  more: Partial<Store> = {},
): Promise<LocalEndpoint> {
  const store: Store = {
    backend,
    redisUrl: undefined,
    pid: undefined,
    stop: async () => undefined,
    start: async () => undefined,
    close: () => backend.close(),
    ...more,
  };
  return LocalEndpoint.open({
    name: `endpoint-${number}`,
    store,
    host: "127.0.0.1",
    port: 0,
    token,
    readOnlyToken: `${token}-read-only`,
    onLog: undefined,
  });
}

/** Three lock servers that can be killed, as `start` of redis-rest-local starts endpoints. */
export async function startLockServers() {
  const endpoints = await Promise.all([1, 2, 3].map(openKillable));
  const env = endpoints.flatMap(({ url }, index) => [
    [`UPSTASH_REDIS_REST_URL_${index + 1}`, url],
    [`UPSTASH_REDIS_REST_TOKEN_${index + 1}`, token],
  ]);
  return {
    endpoints,
    env: () => Object.fromEntries(env) as Record<string, string>,
    async close() {
      await Promise.all(endpoints.map((endpoint) => endpoint.close()));
    },
  };
}

/** A lock server in a workerd of its own, with its storage in a temporary folder. */
async function openKillable(number: number): Promise<LocalEndpoint> {
  const persist = await mkdtemp(join(tmpdir(), "lock-server-"));
  let workerd: Workerd | undefined = await startWorkerd({ persist });
  const backend = lockServerBackend("locks", () => {
    if (!workerd) throw new BackendGoneError("workerd was killed");
    return workerd.url;
  });
  async function stop(): Promise<void> {
    const stopping = workerd;
    workerd = undefined;
    await stopping?.worker.dispose();
  }
  return openEndpoint(number, backend, {
    stop,
    async start() {
      workerd ??= await startWorkerd({ persist });
    },
    async close() {
      await backend.close();
      await stop();
      await rm(persist, { recursive: true, force: true });
    },
  });
}

/** A lock server as the backend of a local endpoint: each command is a request to `lockServerApp` over HTTP. */
export function lockServerBackend(name: string, url: () => string): Backend {
  const ended = new AbortController();
  let flushes = 0;
  const request = (path: string, more: RequestInit) => {
    const headers = { authorization: `Bearer ${token}`, "x-server": `${name}-${flushes}` };
    return fetch(url() + path, { method: "POST", headers, ...more });
  };
  return {
    async execute(command) {
      // A lock server cannot be emptied, so another one takes its place.
      if (command[0] === "FLUSHALL") {
        flushes += 1;
        return { reply: "OK", billed: 1 };
      }
      const response = await request("", { body: JSON.stringify(command) });
      const said = (await response.json()) as { result?: Reply; error?: string };
      const reply = said.error === undefined ? said.result! : new ReplyError(said.error);
      return { reply, billed: 1 };
    },
    transaction: () => Promise.reject(new Error("not needed")),
    async subscribe(command, subscriber) {
      const end = new AbortController();
      const signal = AbortSignal.any([end.signal, ended.signal]);
      const { body } = await request(`/subscribe/${encodeURIComponent(String(command[1]))}`, { signal });
      const events = readEvents(body);
      void (async () => {
        for (let event = await events.next(); event !== undefined; event = await events.next()) {
          const [kind = "", to = "", ...rest] = event.replace(/^data: /, "").split(",");
          subscriber.push([kind, to, kind === "subscribe" ? Number(rest[0]) : rest.join(",")]);
        }
        throw new Error("the stream has ended");
      })().catch((error: Error) => {
        if (!signal.aborted) subscriber.lost(error);
      });
      return () => end.abort();
    },
    close: async () => ended.abort(),
  };
}
