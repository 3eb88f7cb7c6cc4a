import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { d1Schema } from "../../src/inbox/index.ts";
import { type LocalStand, openStand } from "./local-stand.ts";

let stand: LocalStand;
beforeAll(async () => {
  stand = await openStand();
});
afterAll(() => stand?.close());

it("schema.sql has the tables of the inbox", () => {
  const schema = readFileSync(new URL("../../worker/schema.sql", import.meta.url), "utf8");
  expect(schema).toContain(d1Schema.trim());
});

describe("where Redis has lost everything", () => {
  it("a delivery that is sent again has no second effect, and gets the first answer", async () => {
    const delivery = stand.standard("inv_forgotten");
    const first = await stand.send(delivery);
    const body = await first.text();
    for (const endpoint of stand.endpoints) await endpoint.execute(["FLUSHALL"]);
    const again = await stand.send(delivery);
    expect([again.status, await again.text()]).toEqual([200, body]);
    // Redis did not know: the handler ran again, and the table knew.
    expect(again.headers.has("idempotent-replayed")).toBe(false);
    expect(await stand.effects(delivery)).toHaveLength(1);
    expect(
      await stand.query("SELECT events FROM entities WHERE entity = 'standard-webhooks:inv_forgotten'"),
    ).toEqual([{ events: 1 }]);
    const rows = await stand.journal(delivery, 2);
    expect(rows.map(({ outcome }) => outcome)).toEqual(["executed", "replayed"]);
  });
});
