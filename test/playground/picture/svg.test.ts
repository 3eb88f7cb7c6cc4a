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
