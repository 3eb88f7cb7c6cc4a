import { copyFileSync, createReadStream, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import compression from "compression";
import compression17 from "compression-1.7";
import cors from "cors";
import session from "express-session";
import type { FastifyInstance, FastifyReply } from "fastify";
import helmet from "helmet";
import morgan from "morgan";
import multer from "multer";

// What is the same with and without the middleware, over raw sockets: tables of handlers, of middleware around them, and of
// the moments at which a client leaves. Every combination must hold.

// biome-ignore lint/suspicious/noExplicitAny: most of these packages have no types
export type Any = any;

/** When the client leaves: never; while its key is claimed; before the first byte; behind it; while the answer is stored. */
export const phases = ["never", "claim", "begun", "byte", "end"] as const;
export type Phase = (typeof phases)[number];

/**
 * What a retry gets: the answer; status and headers, because the body is not stored; or another run, because the handler
 * has failed. `cut`: the same, and without the middleware the first bytes have been sent.
 */
export type Outcome = "answer" | "omitted" | "again" | "cut";
/** `byte` is awaited behind the first byte. */
export type Step = { readonly byte: () => Promise<void>; readonly next: (error: unknown) => void };
export type Run<Res> = (res: Res, step: Step) => unknown;

const boom = () => Object.assign(new Error("boom"), { stack: "boom" });
const served = mkdtempSync(join(tmpdir(), "served-"));
process.once("exit", () => rmSync(served, { recursive: true, force: true }));
const packageFile = join(served, "package.json");
copyFileSync("package.json", packageFile);

/** Pieces of a body, with a pause behind the first one. */
async function* slowly({ byte }: Step, ...pieces: string[]) {
  for (const [index, piece] of pieces.entries()) {
    yield piece;
    if (index === 0) await byte();
  }
}
async function* failing(step: Step) {
  yield* slowly(step, "half");
  throw boom();
}

/** Handlers of `node:http`, which also stand behind Fastify's `hijack`. */
const plainHandlers: Record<string, [Outcome, Run<Any>]> = {
  end: ["answer", (res) => res.end("whole")],
  nothing: ["answer", (res) => res.end()],
  "write and end": ["answer", (res) => res.write("a") && res.end(Buffer.from("b"))],
  "write, then end": ["answer", (res) => res.write("caf\u00e9", "latin1") && res.end()],
  "writeHead and end": [
    "answer",
    (res) => res.writeHead(202, "Fine", { "X-A": "1", "x-b": ["2", "3"] }).end("x"),
  ],
  "a header less": [
    "answer",
    (res) => {
      res.setHeader("X-A", ["1", "2"]);
      res.appendHeader("X-A", "3");
      res.removeHeader("Date");
      res.end("x");
    },
  ],
  "no body": ["answer", (res) => res.writeHead(204).end("none")],
  "early hints": ["answer", (res) => res.writeEarlyHints({ link: "</a.css>; rel=preload" }) ?? res.end("x")],
  callbacks: ["answer", (res) => res.write("a", () => res.write("b", () => res.end("c")))],
  heartbeat: [
    "answer",
    async (res, { byte }) => {
      res.writeHead(200, { "content-type": "application/json" }).flushHeaders();
      await byte();
      res.end("{}");
    },
  ],
  "heartbeat with a byte": [
    "answer",
    async (res, { byte }) => {
      res.write(" ");
      await byte();
      res.end("{}");
    },
  ],
  "heartbeat until the end": [
    "answer",
    (res) => {
      setImmediate(() => res.finished || res.write(" "));
      res.end("whole");
    },
  ],
  pipe: ["answer", (res, step) => void Readable.from(slowly(step, "a", "b")).pipe(res)],
  pipeline: ["answer", (res, step) => pipeline(Readable.from(slowly(step, "a", "b")), res)],
  "pipeline of a file": ["answer", (res) => pipeline(createReadStream(packageFile), res)],
  "write after end": [
    "answer",
    (res) => {
      res.once("error", () => undefined);
      res.end("whole");
      res.write("more");
    },
  ],
  events: [
    "omitted",
    async (res, { byte }) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.write("data: 1\n\n");
      await byte();
      res.end("data: 2\n\n");
    },
  ],
  "too large": ["omitted", (res) => pipeline(Readable.from(Array(20).fill(Buffer.alloc(20_000, "x"))), res)],
  "too large at once": ["omitted", (res) => res.end(Buffer.alloc(300_000, "x"))],
  "503": ["again", (res) => res.writeHead(503).end("later")],
  "a status that is none": ["again", (res) => res.writeHead(799).end()],
  "pipeline that fails": ["cut", (res, step) => pipeline(Readable.from(failing(step)), res).catch(() => 0)],
  destroy: [
    "cut",
    async (res, { byte }) => {
      res.write("half");
      await byte();
      res.destroy(boom());
    },
  ],
  "destroy of the socket": [
    "cut",
    async (res, { byte }) => {
      res.write("half");
      await byte();
      res.socket.destroy();
    },
  ],
};

export const expressHandlers: Record<string, [Outcome, Run<Any>]> = {
  ...plainHandlers,
  json: [
    "answer",
    (res) =>
      res
        .status(201)
        .json({ body: res.req.body, file: res.req.file?.size, ip: [res.req.ip, res.socket.remoteAddress] }),
  ],
  send: [
    "answer",
    (res) =>
      res
        .set("X-Custom", "1")
        .type("png")
        .send(Buffer.from([1, 2, 255])),
  ],
  sendFile: ["answer", (res) => res.sendFile(packageFile)],
  download: ["answer", (res) => res.download(packageFile, "it.json")],
  redirect: ["answer", (res) => res.redirect(303, "/elsewhere")],
  "not modified": ["answer", (res) => res.status(304).end()],
  cookie: ["answer", (res) => res.cookie("a", "1").send("x")],
  "an error behind the answer": [
    "answer",
    (res) => {
      res.json({ ok: true });
      throw boom();
    },
  ],
  "next(error) behind the answer": ["answer", (res, { next }) => res.json({ ok: true }) && next(boom())],
  throws: [
    "again",
    () => {
      throw boom();
    },
  ],
  "next(error)": ["again", (_, { next }) => next(boom())],
  "throws behind the first byte": [
    "cut",
    async (res, { byte }) => {
      res.write("half");
      await byte();
      throw boom();
    },
  ],
};

/** What Fastify's handlers return is sent. */
export const fastifyHandlers: Record<string, [Outcome, Run<FastifyReply>]> = {
  ...Object.fromEntries(
    Object.entries(plainHandlers).map(([name, [outcome, run]]): [string, [Outcome, Run<FastifyReply>]] => [
      `raw: ${name}`,
      [outcome, (reply, step) => run(reply.hijack().raw, step)],
    ]),
  ),
  json: ["answer", (reply) => reply.code(201).send({ body: reply.request.body })],
  text: ["answer", (reply) => reply.header("X-Custom", "1").send("caf\u00e9")],
  nothing: ["answer", (reply) => reply.code(204).send()],
  "a stream": ["answer", (reply, step) => reply.send(Readable.from(slowly(step, "a", "b")))],
  "a file": ["answer", (reply) => reply.send(createReadStream(packageFile))],
  "a web stream": [
    "answer",
    (reply, step) => reply.send(Readable.toWeb(Readable.from(slowly(step, "a", "b")))),
  ],
  "a Response": ["answer", (reply) => reply.send(new Response("x", { status: 202 }))],
  events: [
    "omitted",
    (reply, step) => reply.type("text/event-stream").send(Readable.from(slowly(step, "a", "b"))),
  ],
  "503": ["again", (reply) => reply.code(503).send("later")],
  "throws a 404": ["again", () => Promise.reject(Object.assign(boom(), { statusCode: 404 }))],
  "a stream that fails": ["cut", (reply, step) => reply.send(Readable.from(failing(step)))],
};

/** What stands around the middleware: further out, and within. */
export interface Stack {
  readonly outer?: readonly (() => Any)[];
  readonly inner?: readonly (() => Any)[];
  /** The handler's answer is encoded before it is held: no body is stored. */
  readonly encodes?: boolean;
  readonly isForm?: boolean;
}
const json = (express: Any) => () => express.json({ type: () => true });
const sessions = () =>
  session({ secret: "s", genid: () => "1", resave: false, saveUninitialized: true, store: slowStore() });
const compress = (make: Any) => () => make({ threshold: 0 });
const log = () => morgan(":method :status :res[content-length]", { stream: { write: () => true } });
export const stacksOf = (express: Any): Record<string, Stack> => ({
  none: {},
  "body-parser further out": { outer: [json(express)] },
  "body-parser within": { inner: [json(express)] },
  "session further out": { outer: [sessions] },
  "session within": { inner: [sessions] },
  "compression 1.7 further out": { outer: [compress(compression17)] },
  "compression 1.7 within": { inner: [compress(compression17)], encodes: true },
  "compression 1.8 further out": { outer: [compress(compression)] },
  "compression 1.8 within": { inner: [compress(compression)], encodes: true },
  "helmet, cors and morgan": { outer: [log, () => helmet(), () => cors({ origin: true })], inner: [log] },
  "multer within": { inner: [() => multer().single("file")], isForm: true },
  all: {
    outer: [log, () => helmet(), () => cors(), compress(compression17), sessions, json(express)],
    inner: [log],
  },
});

/** A store of sessions that answers a turn later, as others than the one in memory do. */
function slowStore(): Any {
  const store = new session.MemoryStore();
  const { set } = store;
  store.set = (id: string, data: Any, done: Any) => setImmediate(() => set.call(store, id, data, done));
  return store;
}

/** Hooks that change payloads and headers. */
export type Prepare = (app: FastifyInstance) => void;
export const fastifyStacks: Record<string, Stack & { prepare?: Prepare }> = {
  none: {},
  "headers by onRequest": {
    prepare: (app) => void app.addHook("onRequest", async (_, reply) => void reply.header("X-Outer", "1")),
  },
  "payloads by onSend": {
    prepare: (app) =>
      void app.addHook("onSend", async (_, reply, payload) => {
        reply.header("X-Sent", "1");
        return typeof payload === "string" ? `<${payload}>` : payload;
      }),
  },
};

/** What is expected of the combinations that are not as their handler says, or not as without the middleware. */
export const exceptions: readonly [handler: RegExp, stack: RegExp, outcome: Outcome, differs: boolean][] = [
  // What these send later is cut off or written behind the end without the middleware; with it, the answer is whole.
  [/behind the answer/, /(session|compression.*) further out|all/, "answer", true],
  [/write after end|until the end/, /session further out|all/, "answer", true],
  // These end the answer later: for those around them, the error comes before its end.
  [/behind the answer/, /session within/, "cut", false],
  // A stream, because it is encoded before it is held.
  [/behind the answer/, /compression.* within/, "omitted", true],
];
