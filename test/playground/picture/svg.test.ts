import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { toSvg } from "../../../playground/picture/svg.ts";
import type { Timeline, TimelineEvent } from "../../../playground/picture/timeline.ts";

const timeline = (events: TimelineEvent[], more: Partial<Timeline> = {}): Timeline => ({
  ...{ version: 1, title: "t", clients: ["A", "B"], endpoints: ["x"], events },
  ...more,
});

describe("toSvg", () => {
  it("draws an endpoint that is killed, and requests that are late, refused, or executed twice", () => {
    const request = (name: string, sent: number, executed: number[], answered: number): TimelineEvent[] => {
      const about = { client: "A", endpoint: "x", operation: "acquire", request: name, key: "orders/17" };
      return [
        { ...about, phase: "sent", time: sent },
        ...executed.map((time): TimelineEvent => ({ ...about, phase: "executed", time, outcome: "held" })),
        { ...about, phase: "answered", time: answered, outcome: "held" },
      ];
    };
    const sample = timeline([
      ...request("1", 0, [8, 30], 16),
      ...request("2", 20, [28], 36),
      ...request("3", 40, [140], 148),
      { time: 100, phase: "fault", endpoint: "x", name: "killed" },
      { time: 130, phase: "healed", endpoint: "x", name: "killed" },
    ]);
    const svg = toSvg([sample], { width: 1_200 });
    for (const text of ["killed", "executed twice", "reply: refused", "time since the start (ms) →"]) {
      expect(svg).toContain(`>${text}</text>`);
    }
    for (const title of ["killed: x", "late request: acquire: A → x"])
      expect(svg).toContain(`<title>${title}\n`);
    expect(svg).not.toMatch(/NaN|undefined|Infinity/);
  });

  it("draws docs/images/timeline.svg from timeline.json", () => {
    const timeline = JSON.parse(readFileSync("docs/images/timeline.json", "utf8")) as Timeline;
    expect(toSvg([timeline])).toBe(readFileSync("docs/images/timeline.svg", "utf8"));
  });

  it("names broken invariants", () => {
    const svg = toSvg([timeline([{ time: 5, phase: "violated", name: "one holder", client: "B" }])]);
    expect(svg).toMatch(/class="broken".*✕ one holder/);
  });

  it("draws several timelines below each other, on one axis", () => {
    const short = timeline([{ time: 5, phase: "upheld", name: "refused", client: "A" }], { title: "with" });
    const long = timeline([{ time: 9, phase: "called", client: "A" }], { title: "without" });
    const whole = { from: 0, to: 20 };
    const svg = toSvg(
      [
        { ...long, ...whole },
        { ...short, ...whole },
      ],
      { title: "both", isPlain: true },
    );
    expect(svg).toMatch(/>both<.*>without<.*>with<.*class="upheld".*✓ refused/s);
    expect(svg).not.toMatch(/CLIENTS|time since/);
    const ids = Array.from(svg.matchAll(/ id="([^"]+)"/g), ([, id]) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("draws an empty timeline, and one of one moment", () => {
    expect(toSvg([timeline([])])).not.toMatch(/NaN|Infinity/);
    expect(toSvg([timeline([{ time: 5, phase: "called", client: "A" }])])).not.toMatch(/NaN|Infinity/);
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
    const svg = toSvg([hostile], { width: 2_400 });
    expect(svg).not.toContain("<script");
    expect(svg).not.toContain("\u0000");
    expect(svg).toContain("&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;&#39;");
  });
});
