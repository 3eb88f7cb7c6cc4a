import { deepEqual, equal, match } from "node:assert/strict";
import { connect, type Socket } from "node:net";
import process from "node:process";
import { constants, gunzipSync } from "node:zlib";
import express5 from "express";
import express4 from "express4";
import Fastify from "fastify";
import { idempotentExpress, idempotentFastify } from "../../src/node/index.ts";
import { freshKey } from "../support/fresh-key.ts";
import { gate } from "../support/link.ts";
import type { Client } from "../support/stores.ts";
import {
  type Any,
  exceptions,
  expressHandlers,
  fastifyHandlers,
  fastifyStacks,
  type Outcome,
  type Phase,
  type Prepare,
  phases,
  type Run,
  type Stack,
  stacksOf,
} from "./adapters-cases.ts";
import { listen } from "./node-stand.ts";

/** One request whose progress the test decides. */
interface Attempt {
  runs: number;
  /** The server's side of the connection. */
  socket?: Socket;
  hasLeft?: boolean;
  /** The run's signal, behind the handler. */
  wasAborted?: boolean;
  /** Called at the beginning of the handler, and behind its first byte. */
  at(phase: Phase): Promise<void>;
}

/** Guards an app, or does not. */
type Build = (
  attempt: () => Attempt,
  guard: Client | undefined,
) => Promise<{ port: number; close(): unknown }>;

/** A framework with its handlers and stacks. */
export interface Framework {
  readonly handlers: Readonly<Record<string, readonly [Outcome, Run<Any>]>>;
  readonly stacks: Readonly<Record<string, Stack>>;
  build(run: Run<Any>, stack: Stack): Build;
}

const lasting = { wait: 0, onEvent: () => undefined };

function expressFramework(express: Any): Framework {
  return {
    handlers: expressHandlers,
    stacks: stacksOf(express),
    build:
      (run, { outer = [], inner = [] }) =>
      async (attempt, guard) => {
        const app = express().set("env", "test");
        app.use((req: Any, _: Any, next: Any) => {
          attempt().socket = req.socket;
          next();
        });
        const guards = guard ? [idempotentExpress({ redlock: guard.redlock, ...lasting })] : [];
        const [further, within] = [outer, inner].map((list) => list.map((make) => make()));
        const route = async (req: Any, res: Any, next: Any) => {
          const now = attempt();
          now.runs += 1;
          try {
            await now.at("begun");
            await run(res, { byte: () => now.at("byte"), next });
            now.wasAborted = req.idempotency?.signal.aborted;
          } catch (error) {
            next(error);
          }
        };
        app.post("/", ...further!, ...guards, ...within!, route);
        return listen(app);
      },
  };
}

const fastifyFramework: Framework = {
  handlers: fastifyHandlers,
  stacks: fastifyStacks,
  build:
    (run, { prepare }: Stack & { prepare?: Prepare }) =>
    async (attempt, guard) => {
      const app = Fastify({ forceCloseConnections: true });
      app.addHook("onRequest", async ({ raw }) => {
        attempt().socket = raw.socket;
      });
      prepare?.(app);
      if (guard) app.register(idempotentFastify({ redlock: guard.redlock, ...lasting }));
      app.addContentTypeParser("*", { parseAs: "string" }, (_, body, done) => done(null, body));
      app.register(async (routes) => {
        routes.post("/", async (_, reply) => {
          const now = attempt();
          now.runs += 1;
          await now.at("begun");
          await run(reply, { byte: () => now.at("byte"), next: () => undefined });
          return reply;
        });
      });
      await app.listen({ port: 0, host: "127.0.0.1" });
      return { port: (app.server.address() as Any).port, close: () => app.close() };
    },
};

export const frameworks: Readonly<Record<string, Framework>> = {
  "Express 5": expressFramework(express5),
  "Express 4": expressFramework(express4),
  "Fastify 5": fastifyFramework,
};

export type Combination = readonly [handler: string, stack: string, phase: Phase];

export function combinationsOf({ handlers, stacks }: Framework): Combination[] {
  return Object.keys(handlers).flatMap((handler) =>
    Object.keys(stacks)
      // Fastify's hooks do not see an answer that is written to `reply.raw`; a replay has their headers.
      .filter((stack) => stack === "none" || !handler.startsWith("raw:"))
      .flatMap((stack) => phases.map((phase) => [handler, stack, phase] as const)),
  );
}

/** A response, apart from its framing. */
interface Seen {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** What happened in one combination. */
export interface Observed {
  readonly outcome: Outcome;
  /** The first answer is not the one without the middleware. */
  readonly differs: boolean;
  /** The bytes that arrived without the middleware, apart from the date. */
  readonly plain: string;
  /** With it; undefined: the client has left. */
  readonly guarded: string | undefined;
  /** What the retry got. */
  readonly retried: Seen;
  /** How often the handler had run before the retry, and behind it. */
  readonly runs: readonly [number, number];
}

/** Of one connection or message, or added for a replay. docs/frameworks.md says what is not replayed. */
const notReplayed = /^(connection|content-length|transfer-encoding|set-cookie|idempotent-.*)$/;
const replayed = (headers: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !notReplayed.test(name)));

/** From Node 26 on, writes of one turn are one chunk, and the held ones are all of one turn. */
function joined(answer: string): string {
  const [, head, rest] = /^(.*\r\ntransfer-encoding: chunked.*?\r\n\r\n)(.*)$/is.exec(answer) ?? [];
  const joins = Number.parseInt(process.versions.node, 10) >= 26 && rest !== undefined;
  return joins ? `${head}${withoutChunks(Buffer.from(rest, "latin1")).toString("latin1")}` : answer;
}

/** Fails unless all is as it is without the middleware, and the retry gets what was answered. */
export function verify({ outcome, differs, plain, guarded, retried, runs: [before, after] }: Observed): void {
  const fails = outcome === "again" || outcome === "cut";
  if (guarded !== undefined && !differs) equal(joined(guarded), outcome === "cut" ? "" : joined(plain));
  equal(after, fails ? before + 1 : 1, "runs");
  // The client had left before its body was parsed.
  if (before === 0) return;
  equal(retried.headers["idempotent-replayed"] === "true", !fails, "replayed");
  if (fails) {
    match(retried.body, /second/);
    return;
  }
  const first = differs ? guarded : plain;
  // How much of a stream that breaks off has arrived is open.
  if (first === undefined || (differs && outcome === "omitted")) return;
  const { status, body, headers } = seen(first);
  deepEqual([retried.status, retried.body], [status, outcome === "omitted" ? "" : body]);
  if (outcome === "answer") deepEqual(replayed(retried.headers), replayed(headers));
}

/** Runs one combination. */
export async function observe(
  client: Client,
  { handlers, stacks, build }: Framework,
  [handler, stackName, phase]: Combination,
): Promise<Observed> {
  const [outcome, run] = handlers[handler]!;
  const stack = stacks[stackName]!;
  let attempt: Attempt = { runs: 0, at: async () => undefined };
  const made = build((res, step) => {
    if (attempt.runs === 1) return run(res, step);
    // Who has failed does it better the second time.
    return (res.hijack?.().raw ?? res).end("second");
  }, stack);
  const text = requestText(freshKey(), stack.isForm);
  const unguarded = await made(() => attempt, undefined);
  const plain = await answerTo(unguarded.port, text);
  await unguarded.close();
  attempt = { runs: 0, at: async () => undefined };
  const app = await made(() => attempt, client);
  const guarded = await answerTo(app.port, text, (socket) => leaveAt(client, attempt, phase, socket));
  let before: number;
  let retry: string;
  let attempts = 0;
  // The first run may be under way: nobody waits for it.
  do {
    before = attempt.runs;
    retry = await answerTo(app.port, text);
    attempts += 1;
  } while (retry.startsWith("HTTP/1.1 409") && attempts < 2_000);
  await app.close();
  if (attempt.wasAborted) throw new Error("a client that leaves must not stop the handler");
  const isEncoded = stack.encodes && outcome === "answer" && /^content-encoding/im.test(plain);
  const exception = exceptions.find(([on, within]) => on.test(handler) && within.test(stackName));
  return {
    outcome: exception?.[2] ?? (isEncoded ? "omitted" : outcome),
    differs: exception?.[3] ?? false,
    plain,
    guarded: attempt.hasLeft ? undefined : guarded,
    retried: seen(retry),
    runs: [before, attempt.runs],
  };
}

/** Prepares that the client leaves at a phase, if it is reached; all goes on when the server has noticed. */
function leaveAt(client: Client, attempt: Attempt, phase: Phase, socket: Socket): void {
  const leave = async () => {
    attempt.hasLeft = true;
    attempt.at = async () => undefined;
    for (const link of client.links) link.fate = () => "delivered";
    const { socket: served } = attempt;
    const closed = new Promise((noticed) => served!.once("close", noticed));
    socket.destroy();
    if (!served!.closed) await closed;
  };
  /** While the next request to the store is under way. */
  const leaveAtStore = () => {
    const left = gate();
    let isFirst = true;
    const before = () => {
      if (isFirst) void leave().then(left.open);
      isFirst = false;
      return left.passed;
    };
    for (const link of client.links) link.fate = () => ({ before });
  };
  if (phase === "claim") leaveAtStore();
  attempt.at = async (now) => {
    if (now === phase) await leave();
    else if (now === "begun" && phase === "end") leaveAtStore();
  };
}

function requestText(key: string, isForm = false): string {
  const part = (name: string, value: string) =>
    `--b\r\ncontent-disposition: form-data; name=${name}\r\n\r\n${value}\r\n`;
  const body = isForm
    ? `${part("amount", "10")}${part('"file"; filename="a.txt"', "bytes")}--b--\r\n`
    : '{"amount":10}';
  return [
    "POST / HTTP/1.1",
    "Host: api.example",
    `Idempotency-Key: ${key}`,
    `Content-Type: ${isForm ? "multipart/form-data; boundary=b" : "application/json"}`,
    `Content-Length: ${body.length}`,
    "Accept-Encoding: gzip",
    "Origin: https://b.example",
    "Connection: close",
    "",
    body,
  ].join("\r\n");
}

/** All bytes that arrive until the connection is closed, a character each, without the date. */
async function answerTo(port: number, text: string, prepare?: (socket: Socket) => void): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  let answer = "";
  socket.on("data", (bytes) => {
    answer += bytes.toString("latin1");
  });
  socket.on("error", () => undefined);
  prepare?.(socket);
  socket.write(text);
  await new Promise((closed) => socket.once("close", closed));
  return answer.replace(/^Date: .*\r\n/m, "");
}

/** The last response in these bytes, behind those that only inform. */
function seen(answer: string): Seen {
  const [, head, rest] = /^(?:HTTP\/1.1 1.*?\r\n\r\n)*(.*?)\r\n\r\n(.*)$/s.exec(answer) ?? ["", "", ""];
  const [first, ...lines] = head!.split("\r\n");
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const [, name, value] = /^(.*?): (.*)$/.exec(line)!;
    headers[name!.toLowerCase()] = [headers[name!.toLowerCase()] ?? [], value].flat().join(", ");
  }
  const framed = Buffer.from(rest!, "latin1");
  const bytes = headers["transfer-encoding"] ? withoutChunks(framed) : framed;
  // One that breaks off is decoded as far as it goes.
  const isGzip = headers["content-encoding"] === "gzip" && bytes.length > 0;
  const body = isGzip ? gunzipSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH }) : bytes;
  return { status: Number(first!.split(" ")[1]), headers, body: body.toString("latin1") };
}

function withoutChunks(framed: Buffer): Buffer {
  const chunks: Buffer[] = [];
  for (let at = 0; ; ) {
    const end = framed.indexOf("\r\n", at);
    const length = Number.parseInt(framed.toString("latin1", at, end), 16);
    if (!length) return Buffer.concat(chunks);
    chunks.push(framed.subarray(end + 2, end + 2 + length));
    at = end + 2 + length + 2;
  }
}
