import express from "express";
import { expect, test, vi } from "vitest";
import type * as Inbox from "../../src/inbox/index.ts";
import type * as Root from "../../src/index.ts";
import { Redlock, type RedlockEvent } from "../../src/index.ts";
import type * as NodeEntry from "../../src/node/index.ts";
import { listen } from "../http/node-stand.ts";
import { post } from "../http/stand.ts";
import { copiesOf } from "../support/copies.ts";
import { freshKey } from "../support/fresh-key.ts";
import { openLocal } from "../support/local-endpoints.ts";
import { rejection } from "../support/outcomes.ts";

// Two copies of this package in a process: ESM beside CommonJS, two versions, or a module that a dev server has loaded again.
// Clients with sockets: endpoints/sockets-copies.test.ts.

test("an error of another copy's endpoint keeps its kind", async () => {
  const copies = await copiesOf<typeof Root>("index.ts");
  const { httpEndpoint } = copies.required();
  const requests: RedlockEvent[] = [];
  const local = await openLocal({ count: 1 });
  const endpoint = httpEndpoint({ url: local.endpoints[0]!.url, token: "wrong" });
  const onEvent = (event: RedlockEvent) => event.type === "request" && requests.push(event);
  const error = await rejection(new Redlock({ endpoints: [endpoint], onEvent }).acquire("a"));
  expect(error).toMatchObject({ votes: [{ cause: { kind: "http", status: 401, permanent: true } }] });
  expect(requests[0]).toMatchObject({ failure: "http" });
  await local.close();
});

test("a connection in one copy's transaction is refused by another copy", async () => {
  const copies = await copiesOf<typeof Inbox>("inbox/index.ts");
  // Its transaction does not end.
  const connection = { query: () => new Promise<never>(() => undefined) };
  const pool = { connect: () => Promise.resolve(connection) };
  void (await copies.reload()).onceInPostgres(pool, { key: "a" }, () => undefined);
  const second = copies.required().onceInPostgres(pool, { key: "b" }, () => undefined);
  await expect(second).rejects.toThrow(
    new TypeError("the connection is in a transaction: every call needs its own"),
  );
});

test("middleware of two copies on one route has the same body and the same key", async () => {
  using _ = vi.spyOn(console, "error").mockReturnValue();
  const copies = await copiesOf<typeof NodeEntry>("node/index.ts");
  const local = await openLocal({ count: 1 });
  const guards = [await copies.reload(), copies.required()].map(({ idempotentExpress }) =>
    idempotentExpress({ redlock: local.redlock(), wait: 0, onEvent: () => undefined }),
  );
  const errors: Error[] = [];
  const app = express();
  app.all("*any", ...(guards as never[]), (_req, res) => void res.end());
  app.use(((error: Error, _req, res, _next) => {
    errors.push(error);
    res.status(500).end();
  }) as express.ErrorRequestHandler);
  const stand = await listen(app);
  expect((await stand.send(post(freshKey()))).status).toBe(500);
  expect(errors).toEqual([expect.objectContaining({ message: expect.stringMatching(/mounted twice/) })]);
  await stand.close();
  await local.close();
});
