import { expect, test } from "vitest";
import { plays } from "./pictures.ts";
import { perform } from "./stage.ts";

// The pictures of docs/internals/algorithm.md and docs/fencing.md show what their titles say.

test.each([
  [
    "acquire-one-down.svg",
    "A acquire granted, B acquire held, A release granted, B acquire granted, B release granted",
  ],
  ["even-split.svg", "A acquire granted, A release granted, B acquire granted, B release granted"],
  ["expired-on-arrival.svg", "A acquire granted"],
  [
    "late-writer.svg",
    "A acquire granted, B acquire granted, B claim granted, B write granted, B release granted, A claim granted, A write held",
  ],
])("%s: %s", async (file, expected) => {
  const { events } = await perform(plays[file]!);
  const returned = events.filter(({ phase }) => phase === "returned");
  const said = returned.map(({ client, operation, outcome }) => `${client} ${operation} ${outcome}`);
  expect(said.join(", ").replaceAll("client ", "")).toBe(expected);
  // Each first round of the two that split is rolled back, and the first round that comes too late.
  const stored = events.filter(({ phase }) => phase === "stored").length;
  expect(stored).toBe({ "even-split.svg": 6, "expired-on-arrival.svg": 6 }[file] ?? stored);
});
