import { type IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import express5 from "express";
import express4 from "express4";
import { afterEach, describe, expect, test } from "vitest";
import { idempotentExpress, type NodeOptions, type NodeRequest } from "../../src/node/index.ts";
import { freshKey } from "../support/fresh-key.ts";
import { gate } from "../support/link.ts";
import { recordsOf } from "../support/stores.ts";
import { until } from "../support/until.ts";
import { asText, listen, type NodeStand } from "./node-stand.ts";
import { delivery, opened, post, problemIn, provider } from "./stand.ts";

// biome-ignore lint/suspicious/noExplicitAny: Express has no types of its own
type Any = any;
type Route = (req: Any, res: Any, next: Any) => unknown;

const at = opened();
const stands: NodeStand[] = [];
afterEach(() => Promise.all(stands.splice(0).map((stand) => stand.close())));

const guard = (options: Partial<NodeOptions<NodeRequest>> = {}) =>
  idempotentExpress({ redlock: at.client.redlock, onEvent: () => undefined, ...options });
const free = async (key: string) =>
  (await recordsOf(at.store, key, [], "http")).every((record) => record === null);

/** The errors that reach an app, whose clients get 500. */
function errorsOf(app: Any): Error[] {
  const errors: Error[] = [];
  app.use((error: Error, _req: Any, res: Any, _next: Any) => {
    errors.push(error);
    res.status(500).end();
  });
  return errors;
}

async function serve(app: Any): Promise<NodeStand> {
  const stand = await listen(app);
  stands.push(stand);
  return stand;
}

describe.each([
  ["Express 5", express5 as Any],
  ["Express 4", express4],
])("%s", (_name, express) => {
  /** An app with one guarded route, whose errors are not written to the console. */
  const appWith = (route: Route, options?: Partial<NodeOptions<NodeRequest>>, ...before: Route[]) =>
    express()
      .set("env", "test")
      .all("*any".replace("any", express === express4 ? "" : "any"), ...before, guard(options), route);

  test.each([[{ "content-type": "text/event-stream" }], [{ "transfer-encoding": "chunked" }]])(
    "events are sent at once: %o",
    async (headers) => {
      const more = gate();
      const app = appWith(async (_req, res) => {
        res.writeHead(200, headers);
        res.flushHeaders();
        res.write("data: 1\n\n");
        await more.passed;
        res.end("data: 2\n\n");
      });
      const stand = await serve(app);
      const reader = (await stand.send(post())).body!.getReader();
      expect(Buffer.from((await reader.read()).value!).toString()).toBe("data: 1\n\n");
      more.open();
      expect(Buffer.from((await reader.read()).value!).toString()).toBe("data: 2\n\n");
      expect((await reader.read()).done).toBe(true);
    },
  );

  test("a body that ends before its announced length is not handled", async () => {
    const headers = { "content-length": "9", "idempotency-key": freshKey() };
    const req = Object.assign(Readable.from([Buffer.from("{}")]), { method: "POST", headers });
    const error = await new Promise<unknown>((resolve) => {
      guard()(req, new ServerResponse(req as IncomingMessage & Any), resolve);
    });
    expect(String(error)).toContain("only 2 of the body's 9 bytes");
    expect(await free(headers["idempotency-key"])).toBe(true);
  });

  describe("the request's body", () => {
    const echo: Route = (req, res) => res.send({ body: req.body ?? null });

    const hears =
      (read: (req: Any) => unknown): Route =>
      (req, _res, next) => {
        read(req);
        next();
      };
    test.each<[string, read: Route, message: string, Partial<NodeOptions<NodeRequest>>?]>([
      [
        "is JSON, for a signature",
        express.json({ type: () => true }),
        'express.raw({ type: "*/*" })',
        { provider },
      ],
      ["is a form with files", express.text({ type: "multipart/*" }), "mount this before the body parser"],
      [
        "keeps it as text",
        express.json({
          type: () => true,
          verify: (req: Any, _: Any, buffer: Any) => Object.assign(req, { rawBody: `${buffer}` }),
        }),
        "keep the Buffer itself",
        { provider },
      ],
      ["listens", hears((req) => req.on("data", () => undefined)), "others listen to it"],
      ["does not want it", hears((req) => req.resume()), "others listen to it"],
      ["makes text of it", hears((req) => req.setEncoding("utf8")), "others listen to it"],
      ["reads it when it comes", hears((req) => req.on("readable", () => req.read())), "others listen to it"],
      [
        "reads a part",
        (req, _, next) => req.once("readable", () => next(req.read(2) && undefined)),
        "bytes are gone",
      ],
    ])("that middleware further out reads is refused: it %s", async (_what, read, message, options) => {
      const app = appWith(echo, options, read);
      const errors = errorsOf(app);
      const stand = await serve(app);
      const id = freshKey();
      const request = options
        ? delivery(id)
        : post(id, { body: "--b--", headers: { "content-type": "multipart/form-data; boundary=b" } });
      expect((await stand.send(request)).status).toBe(500);
      expect(errors[0]!.message).toContain(message);
    });

    test("that express.raw has read is verified", async () => {
      const raw = express.raw({ type: "*/*" });
      const stand = await serve(express().use(raw).post("/hook", guard({ provider }), echo));
      const id = freshKey();
      expect((await stand.send(delivery(id))).status).toBe(200);
      const forged = delivery(id, { signedWith: "another" });
      expect(await problemIn(await stand.send(forged))).toEqual({ status: 401, code: "WEBHOOK_INVALID" });
    });

    test("that is too large is 413, also without its length, and the connection ends", async () => {
      const stand = await serve(appWith(echo, { maxRequestBody: 100_000 }));
      const large = post(freshKey(), { body: "x".repeat(100_001) });
      expect(await problemIn(await stand.send(large))).toEqual({ status: 413, code: "BODY_TOO_LARGE" });
      const chunks = new ReadableStream({
        pull: (controller) => controller.enqueue(new Uint8Array(60_000)),
      });
      const endless = await fetch(`http://127.0.0.1:${stand.port}/payments`, {
        method: "POST",
        headers: { "idempotency-key": freshKey() },
        body: chunks,
        duplex: "half",
      } as RequestInit);
      expect(endless.headers.get("connection")).toBe("close");
      expect(await problemIn(endless)).toEqual({ status: 413, code: "BODY_TOO_LARGE" });
    });

    test("that its client does not finish is an error for Express, and takes no key", async () => {
      const app = appWith(echo);
      const errors = errorsOf(app);
      const stand = await serve(app);
      const key = freshKey();
      const socket = await stand.connect();
      socket.write((await asText(post(key))).slice(0, -3));
      await new Promise((done) => setImmediate(done));
      socket.destroy();
      await until(() => errors.length > 0);
      expect(errors[0]).toMatchObject({ status: 400 });
      expect(await free(key)).toBe(true);
    });
  });

  test("behind a proxy that Express trusts, the address is the one that the client has called", async () => {
    const addresses: string[] = [];
    const fingerprint = ({ url }: Request) => void addresses.push(new URL(url).origin);
    for (const isTrusted of [true, false]) {
      const app = appWith((_req, res) => res.end(), { fingerprint }).set("trust proxy", isTrusted);
      const stand = await serve(app);
      const headers = { "x-forwarded-proto": "https", "x-forwarded-host": "shop.example:8443, inner" };
      await stand.send(post(freshKey(), { headers }));
      if (!isTrusted) addresses.push(`http://127.0.0.1:${stand.port}`);
    }
    expect(addresses).toEqual(["https://shop.example:8443", addresses[2], addresses[2]]);
  });

  test("the whole path counts, also in a router", async () => {
    const router = express.Router().post("/payments", guard(), (_req: Any, res: Any) => res.send("ok"));
    const stand = await serve(express().use("/a", router).use("/b", router));
    const key = freshKey();
    expect((await stand.send(post(key, { path: "/a/payments" }))).status).toBe(200);
    expect((await stand.send(post(key, { path: "/b/payments" }))).status).toBe(422);
  });
});
