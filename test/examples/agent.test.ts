import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { rejection } from "../support/outcomes.ts";
import { importInNode } from "./bundle.ts";
import { staged } from "./stage.ts";

const at = staged();

type Agent = typeof import("../../examples/agent/agent.ts");

const { note, ...amount } = { order: "A 17", cents: 500, note: "Sorry for the delay!" };

it("examples/agent refunds once per step, or without steps once per arguments, whatever the model writes", async () => {
  const { refund } = await importInNode<Agent>("agent/agent.ts", {
    ...at.local.env(),
    SHOP_URL: at.service.url,
  });
  const run = randomUUID();
  for (const place of [{ run, step: 3 }, { run }]) {
    const first = await refund(place, { ...amount, note });
    expect(await refund(place, { note: "We apologise.", cents: 500, order: "A 17" })).toBe(first);
  }
  expect(at.service.calls).toMatchObject(
    Array(2).fill({
      method: "POST",
      path: "/orders/A%2017/refunds",
      body: '{"cents":500,"note":"Sorry for the delay!"}',
    }),
  );
  // Another refund in the place of a step is refused; without steps it is another call.
  const other = { ...amount, note, cents: 5_000 };
  expect(await rejection(refund({ run, step: 3 }, other))).toMatchObject({ code: "FINGERPRINT_MISMATCH" });
  for (const place of [{ run, step: 4 }, { run }]) await refund(place, other);
  expect(at.service.calls).toHaveLength(4);
});
