import { randomBytes } from "node:crypto";
import { once } from "node:events";
import untyped from "express";
import { afterEach, describe, expect, test, vi } from "vitest";
import { type NodeHandlerOptions, toNodeHandler } from "../../src/node/index.ts";
import { gate } from "../support/link.ts";
import { until } from "../support/until.ts";
import { asText, listen, type NodeStand } from "./node-stand.ts";
import { post, problemIn, seen } from "./stand.ts";

// biome-ignore lint/suspicious/noExplicitAny: Express has no types of its own
type Any = any;
const express = untyped as Any;

const stands: NodeStand[] = [];
afterEach(() => Promise.all(stands.splice(0).map((stand) => stand.close())));

async function serve(app: unknown): Promise<NodeStand> {
  const stand = await listen(app);
  stands.push(stand);
  return stand;
}
const serving = (
  handler: (request: Request) => Response | Promise<Response>,
  options?: NodeHandlerOptions,
): Promise<NodeStand> => serve(toNodeHandler(handler, options));

/** The errors that reach an app of Express. */
function errorsOf(app: Any): Error[] {
  const errors: Error[] = [];
  app.use((error: Error, _req: Any, res: Any, _next: Any) => {
    errors.push(error);
    res.status(418).send(error.message);
  });
  return errors;
}

/** Sends a body of unknown length. */
const streamed = (stand: NodeStand, body: ReadableStream<Uint8Array>): Promise<Response> =>
  fetch(`http://127.0.0.1:${stand.port}/`, { method: "POST", body, duplex: "half" } as RequestInit);

test("the handler gets method, address, headers and body; the client status, headers and body", async () => {
  const stand = await serving(async (request) => {
    const { pathname, search } = new URL(request.url);
    const headers = new Headers({ "x-got": `${request.method} ${pathname}${search}` });
    for (const name of ["a", "b"]) headers.append("set-cookie", name);
    return new Response(await request.arrayBuffer(), { status: 202, headers });
  });
  const body = randomBytes(300_000);
  const answer = await stand.send(post("k", { method: "PUT", path: "/p?q=%20", body }));
  expect([answer.status, answer.headers.get("x-got")]).toEqual([202, "PUT /p?q=%20"]);
  expect(answer.headers.getSetCookie()).toEqual(["a", "b"]);
  expect(Buffer.from(await answer.arrayBuffer()).equals(body)).toBe(true);
  const none = await stand.send(post("k", { method: "GET", body: null }));
  expect((await seen(none)).bytes).toHaveLength(0);
});

test("bodies are streamed in both directions", async () => {
  const stand = await serving((request) => new Response(request.body, { headers: { "x-a": "1" } }));
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  void writer.write(Buffer.from("one"));
  const reader = (await streamed(stand, readable)).body!.getReader();
  expect(Buffer.from((await reader.read()).value!).toString()).toBe("one");
  void writer.write(Buffer.from("two"));
  expect(Buffer.from((await reader.read()).value!).toString()).toBe("two");
  await writer.close();
  expect((await reader.read()).done).toBe(true);
});

test("a client that goes away aborts the request's signal; one that was answered does not", async () => {
  const started = gate<AbortSignal>();
  const stand = await serving((request) => {
    if (request.method === "PUT") {
      started.open(request.signal);
      return new Promise(() => undefined);
    }
    answered = request.signal;
    return new Response("ok");
  });
  let answered: AbortSignal | undefined;
  const socket = await stand.connect();
  socket.write(await asText(post("k", { method: "PUT" })));
  const signal = await started.passed;
  expect(signal.aborted).toBe(false);
  socket.destroy();
  await until(() => signal.aborted);
  const other = await stand.connect();
  other.write((await asText(post("k"))).replace("host:", "connection: close\r\nhost:"));
  other.resume();
  await once(other, "close");
  expect(answered?.aborted).toBe(false);
});

test("a response for a client that has gone is cancelled", async () => {
  const started = gate();
  const cancelled = gate();
  const stand = await serving(async ({ signal }) => {
    started.open();
    await new Promise((done) => signal.addEventListener("abort", done));
    return new Response(new ReadableStream({ cancel: () => cancelled.open() }));
  });
  const socket = await stand.connect();
  socket.write(await asText(post("k")));
  await started.passed;
  socket.destroy();
  await cancelled.passed;
});

test("a response that nobody reads any more is cancelled", async () => {
  const cancelled = gate();
  const started = gate();
  const stand = await serving(() => {
    started.open();
    const body = new ReadableStream({
      pull: (controller) => controller.enqueue(new Uint8Array(65_536)),
      cancel: () => cancelled.open(),
    });
    return new Response(body);
  });
  const socket = await stand.connect();
  socket.write(await asText(post("k")));
  await started.passed;
  await once(socket, "readable");
  socket.destroy();
  await cancelled.passed;
});

describe("a body that is too large is 413", () => {
  test("by its length: the handler does not run", async () => {
    let runs = 0;
    const stand = await serving(
      () => {
        runs += 1;
        return new Response();
      },
      { maxRequestBody: 10 },
    );
    const answer = await stand.send(post("k", { body: "x".repeat(11) }));
    expect(await problemIn(answer)).toEqual({ status: 413, code: "BODY_TOO_LARGE" });
    expect(runs).toBe(0);
    expect((await stand.send(post("k", { body: "x".repeat(10) }))).status).toBe(200);
  });

  test("while it is read", async () => {
    const stand = await serving(async (request) => new Response(await request.text()), {
      maxRequestBody: 200_000,
    });
    const endless = new ReadableStream({
      pull: (controller) => controller.enqueue(new Uint8Array(65_536)),
    });
    const answer = await streamed(stand, endless);
    expect(answer.headers.get("connection")).toBe("close");
    expect(await problemIn(answer)).toEqual({ status: 413, code: "BODY_TOO_LARGE" });
  });
});

describe("an error of the handler", () => {
  const boom = () => {
    throw new Error("boom");
  };

  test("is written to the console and answered with 500", async () => {
    const written = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const stand = await serving(boom);
    expect((await stand.send(post("k"))).status).toBe(500);
    expect(written).toHaveBeenCalledWith(expect.objectContaining({ message: "boom" }));
    const failing = new ReadableStream({
      start: (controller) => controller.enqueue(new Uint8Array(3)),
      pull: boom,
    });
    const half = await serving(() => new Response(failing));
    await expect(half.send(post("k")).then((answer) => answer.text())).rejects.toThrow();
    written.mockRestore();
  });

  test("is Express's, where there is one", async () => {
    const app = express().post("/payments", toNodeHandler(boom));
    errorsOf(app);
    const stand = await serve(app);
    const answer = await stand.send(post("k"));
    expect([answer.status, await answer.text()]).toEqual([418, "boom"]);
  });
});

describe("in Express", () => {
  const echo = toNodeHandler(
    async (request) => new Response(`${new URL(request.url).pathname} ${await request.text()}`),
  );

  test("the whole path counts, also in a router", async () => {
    const stand = await serve(express().use("/a", express.Router().use("/payments", echo)));
    expect(await (await stand.send(post("k", { path: "/a/payments", body: "x" }))).text()).toBe(
      "/a/payments x",
    );
  });

  test("a body that express.raw has read is used; of a parsed one the error says what to do", async () => {
    const raw = await serve(express().use(express.raw({ type: "*/*" }), echo));
    expect(await (await raw.send(post("k", { body: "x" }))).text()).toBe("/payments x");
    const app = express().use(express.text({ type: "*/*" }), echo);
    const errors = errorsOf(app);
    const parsed = await serve(app);
    await parsed.send(post("k"));
    expect(errors[0]?.message).toContain('express.raw({ type: "*/*" })');
  });
});

test("a request that is none is 400", async () => {
  const written = vi.spyOn(console, "error").mockImplementation(() => undefined);
  const stand = await serving(() => new Response());
  const socket = await stand.connect();
  socket.write("POST / HTTP/1.1\r\nhost: not a host\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
  const [answer] = await once(socket, "data");
  expect(String(answer)).toMatch(/^HTTP\/1.1 400 /);
  written.mockRestore();
});

test("without the package that it needs, the error names it", async () => {
  vi.doMock("@remix-run/node-fetch-server", () => {
    throw new Error("not found");
  });
  const app = express().use(toNodeHandler(() => new Response()));
  const errors = errorsOf(app);
  const stand = await serve(app);
  await stand.send(post("k"));
  vi.doUnmock("@remix-run/node-fetch-server");
  expect(errors[0]?.message).toBe("toNodeHandler needs a package: npm install @remix-run/node-fetch-server");
});

test("wrong arguments are refused at once", () => {
  expect(() => toNodeHandler({} as never)).toThrow(TypeError);
  expect(() => toNodeHandler(() => new Response(), { maxBody: 1 } as never)).toThrow("no option");
  expect(() => toNodeHandler(() => new Response(), { maxRequestBody: -1 })).toThrow(RangeError);
});
