import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { parseTimeline } from "../../../playground/picture/parse.ts";
import { toSvg } from "../../../playground/picture/svg.ts";
import { sampleTimeline } from "../../support/timeline.ts";

it("reads a timeline, and puts its events in order", () => {
  const text = JSON.stringify({ ...sampleTimeline, events: [...sampleTimeline.events].reverse() });
  const times = parseTimeline(text).events.map(({ time }) => time);
  expect(times).toEqual(sampleTimeline.events.map(({ time }) => time));
});

const event = (more: object) => ({ events: [{ time: 1, phase: "called", ...more }] });
it.each([
  [{ version: 2 }, "version"],
  [{ title: undefined }, "title"],
  [{ clients: "A" }, "clients"],
  [{ endpoints: [1] }, "endpoints"],
  [{ to: "1" }, "to must be a number"],
  [{ events: {} }, "events"],
  [event({ time: "1" }), "event 1: time"],
  [event({ phase: "toString" }), "event 1: toString is not a phase"],
  [event({ client: 1 }), "event 1: client"],
  [event({ fence: "7" }), "event 1: fence"],
  [event({ outcome: "refused" }), "event 1: outcome must be one of granted, held"],
  [event({ what: "answer" }), "event 1: what"],
  [event({ votes: { a: "yes" } }), "event 1: outcome"],
  [event({ votes: [] }), "event 1: votes must be an object"],
])("refuses %j", (wrong, message) => {
  const text = JSON.stringify({ version: 1, title: "", clients: [], endpoints: [], events: [], ...wrong });
  expect(() => parseTimeline(text)).toThrow(message);
});

it("docs/images/timeline.json is a timeline, and timeline.svg its picture", () => {
  const timeline = parseTimeline(readFileSync("docs/images/timeline.json", "utf8"));
  expect(toSvg(timeline)).toBe(readFileSync("docs/images/timeline.svg", "utf8"));
});
