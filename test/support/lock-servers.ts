import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { Miniflare } from "miniflare";
import { ReplyError } from "../../local/src/engine/engine.ts";
import type { Backend } from "../../local/src/rest/backend.ts";
import { LocalEndpoint } from "../../local/src/rest/endpoint.ts";
import { StatusReply, type WireReply } from "../../local/src/rest/redis/resp.ts";
import type { Store } from "../../local/src/rest/store.ts";
import { readEvents } from "./event-reader.ts";

const entry = fileURLToPath(new URL("lock-servers-worker.ts", import.meta.url));

/** The token of every lock server here. */
export const token = "token-of-the-lock-servers-of-the-tests";

/** A workerd with lock servers. */
export interface Workerd {
  readonly url: string;
  readonly worker: Miniflare;
}

/** Starts one. `persist`: the folder of its storage. Default: in memory. */
export async function startWorkerd({ persist }: { readonly persist?: string } = {}): Promise<Workerd> {
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    format: "esm",
    target: "es2022",
  });
  const worker = new Miniflare({
    modules: true,
    script: outputFiles[0]!.text,
    compatibilityDate: "2026-04-01",
    bindings: { TOKEN: token },
    durableObjects: { LOCKS: { className: "TestLockServer", useSQLite: true } },
    ...(persist !== undefined && { durableObjectsPersist: persist }),
    cf: false,
    telemetry: { enabled: false },
  });
  return { url: (await worker.ready).href.replace(/\/$/, ""), worker };
}

/** The one that the tests of a process share. It ends with the process. */
let shared: Promise<Workerd> | undefined;
let opened = 0;

/** Local endpoints, with their faults and logs, in front of new lock servers. `shards`: of each. Default 1. */
export async function openLockServers(
  count: number,
  shards = 1,
): Promise<{ readonly endpoints: readonly LocalEndpoint[]; close(): Promise<void> }> {
  shared ??= startWorkerd();
  const { url } = await shared;
  opened += 1;
  const endpoints = await Promise.all(
    Array.from({ length: count }, (_, index) =>
      LocalEndpoint.open({
        name: `endpoint-${index + 1}`,
        store: storeOf(lockServerBackend(url, `server-${opened}-${index}`, shards)),
        host: "127.0.0.1",
        port: 0,
        token,
        readOnlyToken: `${token}-read-only`,
        faultsApi: false,
        onLog: undefined,
      }),
    ),
  );
  return {
    endpoints,
    async close() {
      await Promise.all(endpoints.map((endpoint) => endpoint.close()));
    },
  };
}

function storeOf(backend: Backend): Store {
  return {
    backend,
    redisUrl: undefined,
    pid: undefined,
    clockOffset: 0,
    stop: async () => undefined,
    start: async () => undefined,
    close: () => backend.close(),
  };
}

/** A lock server as the backend of a local endpoint: each command is a request to `lockServerApp` over HTTP. */
function lockServerBackend(url: string, name: string, shards: number): Backend {
  const headers = { authorization: `Bearer ${token}`, "x-server": name, "x-shards": String(shards) };
  const ended = new AbortController();
  return {
    async execute(command) {
      const words = command.map((word) => Buffer.from(word as string).toString());
      if (words[0] === "FLUSHALL") {
        await fetch(`${url}/flush`, { method: "POST", headers });
        return { reply: new StatusReply("OK"), billed: 1 };
      }
      const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(words) });
      const said = (await response.json()) as { result?: WireReply; error?: string };
      const reply = said.error === undefined ? wireOf(said.result!) : new ReplyError(said.error);
      return { reply, billed: 1 };
    },
    transaction: () => Promise.reject(new Error("not needed")),
    async subscribe(command, subscriber) {
      const end = new AbortController();
      const signal = AbortSignal.any([end.signal, ended.signal]);
      const channel = encodeURIComponent(String(command[1]));
      const { body } = await fetch(`${url}/subscribe/${channel}`, { method: "POST", headers, signal });
      const events = readEvents(body);
      void (async () => {
        for (let event = await events.next(); event !== undefined; event = await events.next()) {
          const [kind = "", to = "", ...rest] = event.replace(/^data: /, "").split(",");
          subscriber.push([kind, to, kind === "subscribe" ? Number(rest[0]) : rest.join(",")].map(wireOf));
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

function wireOf(reply: WireReply | string): WireReply {
  if (typeof reply === "string") return Buffer.from(reply);
  return Array.isArray(reply) ? reply.map(wireOf) : (reply as WireReply);
}
