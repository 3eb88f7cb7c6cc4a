import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { startInWorkerd } from "./bundle.ts";
import { staged } from "./stage.ts";

// The examples for Cloudflare Workers, in workerd, with D1; once.test.ts has their webhooks.

const at = staged();

it("examples/d1-fence takes five amounts that are requested at once, and nothing when a later holder has the row", async () => {
  const worker = await startInWorkerd("d1-fence/worker.ts", {
    bindings: at.local.env(),
    d1Databases: ["DB"],
  });
  const db = await worker.getD1Database("DB");
  // D1's `exec` takes each line for a statement.
  await db.exec(readFileSync("examples/d1-fence/schema.sql", "utf8").replaceAll("\n", " "));
  await db.prepare("INSERT INTO accounts VALUES ('a', 60, 0)").run();
  const body = JSON.stringify({ account: "a", amount: 10 });
  const pay = async () =>
    (await worker.dispatchFetch("https://shop.example/", { method: "POST", body })).status;
  const untilDecided = async () => {
    for (;;) {
      const status = await pay();
      if (status !== 409) return status;
    }
  };
  expect(await Promise.all(Array.from({ length: 5 }, untilDecided))).toEqual([200, 200, 200, 200, 200]);
  await db
    .prepare("UPDATE accounts SET fence = ?1")
    .bind(2 ** 50)
    .run();
  expect(await pay()).toBe(409);
  expect(await db.prepare("SELECT balance FROM accounts").first()).toEqual({ balance: 10 });
});

it("examples/lock-server answers others by HTTPS, with its token", async () => {
  const token = "0123456789abcdef0123456789abcdef";
  const worker = await startInWorkerd("lock-server/worker.ts", {
    bindings: { LOCKS_TOKEN: token, GITHUB_WEBHOOK_SECRET: "secret" },
    durableObjects: { LOCKS: { className: "LockServer", useSQLite: true } },
  });
  const body = JSON.stringify(["SET", "redlock:lock:{a}", "t1", "NX", "PX", 1_000]);
  const ask = (given: string) =>
    worker.dispatchFetch("https://locks.example/", {
      method: "POST",
      body,
      headers: { authorization: `Bearer ${given}` },
    });
  const answer = await ask(token);
  expect([answer.status, await answer.json()]).toEqual([200, { result: "OK" }]);
  expect((await ask("no")).status).toBe(401);
});
