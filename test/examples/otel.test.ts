import { expect, it } from "vitest";
import { bundleForNode } from "./bundle.ts";
import { startNode } from "./node-process.ts";
import { staged } from "./stage.ts";

const at = staged();

it("examples/otel/console prints the spans of its job, and the metrics", async () => {
  const example = startNode([await bundleForNode("otel/console.mjs")], at.local.env());
  expect(await example.ended, example.output()).toBe(0);
  const output = example.output();
  expect(output).toContain("the payment was executed");
  expect(output).toContain("invoice:43 is held; again: null");
  // As ConsoleSpanExporter prints them, in the order of their ends.
  const outcomes = [
    ...output.matchAll(/^ {2}(?: {2}|attributes: { (?:.*, )?)'redlock\.outcome': '(\w+)'/gm),
  ].map(([, outcome]) => outcome);
  expect(outcomes).toEqual(["acquired", "executed", "released", "acquired", "held", "released"]);
  for (const metric of ["redlock.acquire.duration", "redlock.hold.duration", "redlock.endpoint.commands"]) {
    expect(output).toContain(`name: '${metric}'`);
  }
});
