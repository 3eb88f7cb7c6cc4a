import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { docsPicture } from "../../../playground/docs-picture.ts";
import { toSvg } from "../../../playground/picture/svg.ts";
import type { Timeline, TimelineEvent } from "../../../playground/picture/timeline.ts";
import { scenes } from "../../../playground/scenes/index.ts";

const recording = JSON.parse(readFileSync("docs/images/timeline.json", "utf8")) as Timeline;
const timeline = (events: TimelineEvent[], more: Partial<Timeline> = {}): Timeline => ({
  ...{ version: 1, title: "t", clients: ["A", "B"], endpoints: ["x"], events },
  ...more,
});

describe("toSvg", () => {
  it("draws a recording, with legend, unit, and texts about everything", () => {
    const killed: TimelineEvent = { time: 100, phase: "fault", endpoint: "c", name: "killed" };
    const svg = toSvg([{ ...recording, events: [...recording.events, killed] }], { width: 1_200 });
    for (const text of [
      "A · fence 7",
      "paused",
      "killed",
      "acquire: granted 2/3",
      "lost",
      "time since the start (ms) →",
      "taken off for drift",
      "result: refused",
    ]) {
      expect(svg).toContain(`>${text}</text>`);
    }
    for (const title of ["orders/17 on a", "A may rely on orders/17", "killed: c", "acquire: B → c"]) {
      expect(svg).toContain(`<title>${title}\n`);
    }
    expect(svg).toContain("votes: a: granted, b: granted, c: unavailable");
    expect(svg).toContain('fill="url(#picture-hatch)"');
    expect(svg).not.toMatch(/NaN|undefined|Infinity/);
  });

  it("draws docs/images/timeline.svg from timeline.json", () => {
    expect(toSvg([recording])).toBe(readFileSync("docs/images/timeline.svg", "utf8"));
  });

  it.each(scenes)(
    "draws $id for the docs; if the picture differs, run tools/draw-docs.mjs",
    async (scene) => {
      expect(await docsPicture(scene)).toBe(readFileSync(`docs/images/${scene.id}.svg`, "utf8"));
    },
  );

  it("draws what no scene has, as in odd.svg", async () => {
    const about = { client: "worker A", endpoint: "x", operation: "acquire", key: "k" } as const;
    const request = (id: string, ...phases: [TimelineEvent["phase"], number, Partial<TimelineEvent>?][]) =>
      phases.map(([phase, time, more]) => ({ ...about, request: id, phase, time, ...more }));
    const granted = { outcome: "granted" } as const;
    const usual = [1, 2, 3, 4].flatMap((at) =>
      request(`usual ${at}`, ["sent", at], ["executed", at + 4, granted], ["answered", at + 8, granted]),
    );
    const stored = { ...about, phase: "stored", holder: "worker A", fence: 1 } as const;
    const valid = { phase: "valid", client: "worker A", key: "k", fence: 7 } as const;
    const fault = (time: number, name: string, of: Partial<TimelineEvent>) =>
      ({ phase: "fault", time, name, ...of }) as const;
    const events: TimelineEvent[] = [
      ...usual,
      // Four times as long as usual, but not 20 ms.
      ...request("not late", ["sent", 10], ["executed", 28, granted], ["answered", 32, granted]),
      ...request("late", ["sent", 30], ["executed", 60, granted], ["answered", 64, granted]),
      ...request("no reply", ["sent", 70], ["executed", 75, granted], ["lost", 79, { what: "reply" }]),
      ...request("lost at once", ["sent", 80], ["lost", 80, { what: "request" }]),
      ...request("never executed", ["sent", 90], ["answered", 98, granted]),
      ...request("open", ["sent", 100]),
      { ...stored, time: 100, until: 300 },
      { ...stored, time: 150, until: 350, fence: 2 },
      // Expired, whatever comes later.
      { ...stored, time: 250, until: 300, endpoint: "y" },
      { ...stored, time: 110, until: 200, endpoint: "y" },
      { ...about, phase: "removed", time: 400, endpoint: "y", holder: "worker A" },
      // The part that is taken off for drift: before an extension that comes late, and not before one in time.
      { ...valid, time: 100, until: 200, safe: 180 },
      { ...valid, time: 150, until: 250, safe: 230 },
      { ...valid, time: 240, until: 340, safe: 320 },
      { ...valid, client: "worker B", time: 100, until: 300, safe: 90 },
      { phase: "called", time: 200, client: "worker B", operation: "acquire", key: "k", call: "1" },
      fault(210, "paused", { client: "worker A" }),
      fault(220, "slow", { client: "worker A" }),
      fault(230, "frozen", { endpoint: "x" }),
      fault(240, "frozen link", { client: "worker B", endpoint: "x" }),
      { phase: "healed", time: 300, client: "worker A", name: "paused" },
      { phase: "violated", time: 310, name: "one holder", client: "worker B" },
      { phase: "upheld", time: 320, name: "fences rise" },
    ];
    const given = { clients: ["worker A", "worker B", "runner A"], endpoints: ["x", "y"], to: 420 };
    events.sort((one, other) => one.time - other.time);
    const svg = toSvg([timeline(events, given)], { width: 1_600 });
    await expect(svg.replaceAll("><", ">\n<")).toMatchFileSnapshot("odd.svg");
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
