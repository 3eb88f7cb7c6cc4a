import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { frameOf } from "../../../playground/picture/frame.ts";
import { itemAt, itemsOf } from "../../../playground/picture/hit.ts";
import { shapesOf } from "../../../playground/picture/layout.ts";
import { toSvg } from "../../../playground/picture/svg.ts";
import type { Timeline, TimelineEvent } from "../../../playground/picture/timeline.ts";
import { Narrator } from "../../../playground/picture/words.ts";
import { sampleTimeline } from "../../support/timeline.ts";

const timeline = (events: TimelineEvent[], more: Partial<Timeline> = {}): Timeline => ({
  ...{ version: 1, title: "t", clients: ["A", "B"], endpoints: ["x"], events },
  ...more,
});

describe("toSvg", () => {
  it("draws the sample, with legend, unit, and texts about everything", () => {
    const svg = toSvg(sampleTimeline, 1_200);
    for (const text of [
      "A · fence 7",
      "paused",
      "killed",
      "acquire: granted 2/3",
      "write: refused",
      "lost",
    ]) {
      expect(svg).toContain(`>${text}</text>`);
    }
    for (const text of [
      "time since the start (ms) →",
      "taken off for drift",
      "executed twice",
      "result: refused",
    ]) {
      expect(svg).toContain(`>${text}</text>`);
    }
    expect(svg).toContain("votes: redis-1: granted, redis-2: granted, redis-3: unavailable");
    expect(svg).toContain('fill="url(#picture-hatch)"');
    expect(svg).not.toMatch(/NaN|undefined|Infinity/);
  });

  it("draws docs/images/timeline.svg from timeline.json", () => {
    const timeline = JSON.parse(readFileSync("docs/images/timeline.json", "utf8")) as Timeline;
    expect(toSvg(timeline)).toBe(readFileSync("docs/images/timeline.svg", "utf8"));
  });

  it("names broken invariants", () => {
    const svg = toSvg(timeline([{ time: 5, phase: "violated", name: "one holder", client: "B" }]));
    expect(svg).toMatch(/class="violation".*✕ one holder/);
  });

  it("draws an empty timeline, and one of one moment", () => {
    expect(toSvg(timeline([]))).not.toMatch(/NaN|Infinity/);
    expect(toSvg(timeline([{ time: 5, phase: "called", client: "A" }]))).not.toMatch(/NaN|Infinity/);
  });

  it("makes text of names that are markup", () => {
    const name = `<script>alert("1")</script>&'\u0000`;
    const hostile = timeline(
      [
        { time: 1, phase: "called", client: name, operation: name, key: name, call: "1" },
        {
          time: 9,
          phase: "returned",
          client: name,
          call: "1",
          outcome: "held",
          votes: { [name]: "held" },
          detail: name,
        },
        { time: 2, phase: "sent", client: name, endpoint: name, request: name, key: name, operation: name },
        { time: 3, phase: "stored", endpoint: name, key: name, holder: name },
        { time: 4, phase: "fault", endpoint: name, name },
        { time: 5, phase: "violated", name, detail: name },
      ],
      { title: name, clients: [name], endpoints: [name] },
    );
    const svg = toSvg(hostile, 2_400);
    expect(svg).not.toContain("<script");
    expect(svg).not.toContain("\u0000");
    expect(svg).toContain("&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;&#39;");
  });
});

describe("what the pointer is on", () => {
  const shapes = shapesOf(sampleTimeline);
  const frame = frameOf(shapes, { width: 1280, from: 0, to: 450 });
  const titleAt = (time: number, y: number) =>
    itemAt(itemsOf(shapes), frame.x(time), y, frame)?.note(new Narrator(shapes)).title;

  it("is a result, a request, a bar or a fault", () => {
    const [a, b, one, , three, database] = frame.lanes;
    expect(titleAt(24, a!.axis)).toBe("A: acquire granted");
    expect(titleAt(361, a!.axis)).toBe("A: write refused");
    expect(titleAt(100, one!.barTop + 5)).toBe("orders/17 on redis-1");
    expect(titleAt(300, b!.barTop + 5)).toBe("B may rely on orders/17");
    expect(titleAt(300, three!.barTop + 5)).toBe("killed: redis-3");
    const half = (b!.axis + three!.axis) / 2;
    expect(titleAt(152, half)).toBe("late request: acquire: B → redis-3");
    expect(titleAt(440, database!.axis - 3)).toBeUndefined();
  });

  it("is an execution whose request was not recorded", () => {
    const about = { endpoint: "x", client: "A", request: "1", operation: "EVALSHA" };
    const shapes = shapesOf(
      timeline([{ time: 5, phase: "executed", outcome: "held", ...about }], { from: 0, to: 9 }),
    );
    const frame = frameOf(shapes, { width: 900, from: 0, to: 9 });
    const item = itemAt(itemsOf(shapes), frame.x(5), frame.lanes[2]!.axis, frame);
    expect(item?.note(new Narrator(shapes)).title).toBe("EVALSHA: A → x");
    expect(item?.note(new Narrator(shapes)).lines).toContain("executed at 5 ms: refused");
  });
});
