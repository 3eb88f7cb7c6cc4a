import { afterAll, beforeAll, expect, test } from "vitest";
import { Idempotency } from "../../../src/idempotency/index.ts";
import { httpEndpoint, Redlock } from "../../../src/index.ts";
import { type Local, newResource, openLocal } from "../../support/local-endpoints.ts";

// On Workers every request makes a client of its own. What one has seen of a server must not cost the next one again.

let local: Local;
beforeAll(async () => {
  local = await openLocal({ count: 1, engine: "embedded", dialect: "redis" });
});
afterAll(() => local.close());

const newClient = () =>
  new Redlock({
    endpoints: local.endpoints.map(({ url, token }) => httpEndpoint({ url, token, dialect: "redis" })),
  });

test("what a server has shown costs nothing once more, and a script's text is sent once", async () => {
  const bills: { requests: number; commands: string[] }[] = [];
  for (let client = 0; client < 4; client += 1) {
    await local.reset();
    const redlock = newClient();
    await new Idempotency(redlock).run(newResource(), async () => "done");
    const lock = await redlock.acquire(newResource(), { fencing: true });
    await lock.release();
    bills.push({ requests: local.requests(), commands: local.commands() });
  }
  const [first, , third, fourth] = bills;
  expect(fourth).toEqual(third);
  expect(first!.commands).toContain("EVAL");
  expect(third!.commands).not.toContain("EVAL");
});
