import { expect, test } from "vitest";
import { apart, plot, ticksUpTo } from "../../../bench/plot.mjs";

test.each([
  [1, [0, 0.2, 0.4, 0.6, 0.8, 1]],
  [2.1, [0, 0.5, 1, 1.5, 2, 2.5]],
  [92, [0, 20, 40, 60, 80, 100]],
  [400, [0, 100, 200, 300, 400]],
])("ticks up to %d are round, begin at 0 and cover it", (max, ticks) => {
  expect(ticksUpTo(max)).toEqual(ticks);
});

test("labels that would overlap move apart, in the order of their lines", () => {
  expect(apart([10, 100])).toEqual([10, 100]);
  expect(apart([50, 40, 45], 20)).toEqual([80, 40, 60]);
});

const title = "Less is <better> & cheaper";
const lines = { title: "commands", xTitle: "waiters", xs: [1, 10, 50] };

test("a line is drawn through the values that were measured, and has its name", () => {
  const svg = plot({
    title,
    panels: [
      {
        ...lines,
        lines: [
          { name: "all", values: [5, 10, 0] },
          { name: "two", values: [10, 5, undefined] },
        ],
      },
    ],
  });
  expect(svg).toContain("Less is &lt;better&gt; &amp; cheaper");
  const paths = [...svg.matchAll(/class="line s\d"[^>]* d="M([^"]*)"/g)].map(([, path]) =>
    path!.split("L").map((point) => point.split(",").map(Number)),
  );
  expect(paths.map(({ length }) => length)).toEqual([3, 2]);
  const [all, two] = paths as [number[][], number[][]];
  // The same x for the same place; a greater value is higher up, 0 is at the bottom, in proportion.
  expect(all[1]![0]).toBe(two[1]![0]);
  const [five, ten, zero] = all.map(([, y]) => y!) as [number, number, number];
  expect(zero - ten).toBeCloseTo(2 * (zero - five));
  expect(ten).toBeLessThan(five);
  for (const name of ["all", "two", "commands", "waiters"]) expect(svg).toContain(`>${name}</text>`);
});

test("a bar is as long as its value, and shows it with its note", () => {
  const bars = [
    { name: "one", value: 1.5, ours: true },
    { name: "two", value: 3, note: "3 served" },
  ];
  const svg = plot({ title, panels: [{ title: "time", xTitle: "ideal times", bars }] });
  const [one, two] = [...svg.matchAll(/class="bar[^"]*" .* width="([\d.]+)"/g)].map(([, width]) =>
    Number(width),
  );
  expect(two! / one!).toBeCloseTo(2);
  expect(svg).toContain(">1.50</text>");
  expect(svg).toContain(">3.00, 3 served</text>");
});
