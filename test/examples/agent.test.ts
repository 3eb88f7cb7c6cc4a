import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { rejection } from "../support/outcomes.ts";
import { importInNode } from "./bundle.ts";
import { staged } from "./stage.ts";

const at = staged();

type Agent = typeof import("../../examples/agent/agent.ts");

it("examples/agent refunds once per step, whatever the model writes, and refuses another refund in its place", async () => {
  const { refund } = await importInNode<Agent>("agent/agent.ts", {
    ...at.local.env(),
    SHOP_URL: at.service.url,
  });
  const place = { run: randomUUID(), step: 3 };
  const wanted = { order: "A 17", cents: 500, note: "Sorry for the delay!" };
  const first = await refund(place, wanted);
  expect(await refund(place, { ...wanted, note: "We apologise." })).toBe(first);
  expect(at.service.calls).toMatchObject([
    { method: "POST", path: "/orders/A%2017/refunds", body: '{"cents":500,"note":"Sorry for the delay!"}' },
  ]);
  const other = await rejection(refund(place, { ...wanted, cents: 5_000 }));
  expect(other).toMatchObject({ code: "FINGERPRINT_MISMATCH" });
  await refund({ ...place, step: 4 }, wanted);
  expect(at.service.calls).toHaveLength(2);
});

it("examples/agent refunds once per run for the same arguments, in any order, where there are no steps", async () => {
  const { refund } = await importInNode<Agent>("agent/agent.ts", {
    ...at.local.env(),
    SHOP_URL: at.service.url,
  });
  const place = { run: randomUUID() };
  const first = await refund(place, { order: "A 17", cents: 500, note: "Sorry for the delay!" });
  expect(await refund(place, { note: "We apologise.", cents: 500, order: "A 17" })).toBe(first);
  await refund(place, { order: "A 17", cents: 501, note: "" });
  await refund({ run: randomUUID() }, { order: "A 17", cents: 500, note: "" });
  expect(at.service.calls).toHaveLength(3);
});
