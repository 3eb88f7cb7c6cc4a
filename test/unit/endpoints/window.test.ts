import { describe, expect, test } from "vitest";
import { afterAnswer, afterTimeout, initialWindow, type Window } from "../../../src/endpoints/window.ts";

const all = Infinity;

describe("an answer", () => {
  test.each<[what: string, window: Window, replies: number, took: number, size: number]>([
    ["at once: the first windows grow fourfold", initialWindow, 100, 0.001, 400],
    ["that shows how much more would be early: to that", initialWindow, 100, 0.2, 200],
    ["just early: it stays", initialWindow, 100, 0.4, 100],
    ["to a part of the window: by that part", initialWindow, 10, 0.001, 130],
    ["above the threshold: by one command for each window", { size: 200, threshold: 200 }, 200, 0.001, 201],
    ["without a reply: it stays", initialWindow, 0, 0.001, 100],
    ["late: half", { size: 400, threshold: all }, 400, 0.41, 200],
    ["late: no less than the first one", { size: 150, threshold: all }, 150, 0.41, 100],
    ["late, below the first one: it stays", { size: 50, threshold: 50 }, 50, 0.9, 50],
  ])("%s", (_, window, replies, took, size) => {
    expect(afterAnswer(window, { replies, inFlight: window.size, took }).size).toBeCloseTo(size, 9);
  });

  test("in a window of which half is unused leaves it: nobody needs more", () => {
    expect(afterAnswer(initialWindow, { replies: 1, inFlight: 49, took: 0.001 })).toEqual(initialWindow);
    expect(afterAnswer(initialWindow, { replies: 1, inFlight: 50, took: 0.001 }).size).toBe(103);
  });
});

test("a timeout halves the window, down to ten commands, and makes it grow slowly from there", () => {
  let window = afterTimeout(initialWindow);
  expect(window).toEqual({ size: 50, threshold: 50 });
  for (let times = 0; times < 10; times += 1) window = afterTimeout(window);
  expect(window).toEqual({ size: 10, threshold: 10 });
  expect(afterAnswer(window, { replies: 10, inFlight: 10, took: 0.001 }).size).toBe(11);
});
