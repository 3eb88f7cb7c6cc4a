import { describe, expect, test, vi } from "vitest";
import { type Promptness, Room } from "../../../src/endpoints/room.ts";

/** Takes as many places as there are. */
function fill(room: Room): number {
  let taken = 0;
  while (room.take()) taken += 1;
  return taken;
}

/** The places after so many answers of each kind, in a room that is full all the time. */
function placesAfter(answers: string): number {
  const room = new Room(10);
  let taken = fill(room);
  for (const [, count, promptness] of answers.matchAll(/(\d+) (\w+)/g)) {
    for (let answer = 0; answer < Number(count); answer += 1) {
      room.leave(promptness === "unsent" ? undefined : (promptness as Promptness));
      taken += fill(room) - 1;
    }
  }
  return taken;
}

describe("the places", () => {
  test.each<[what: string, answers: string, places: number]>([
    ["are 100 at first", "", 100],
    ["are one more with each early answer", "30 early", 130],
    ["are one fewer with each late answer, but not fewer than at first", "100 early, 30 late", 170],
    ["are not fewer than at first for late answers: an endpoint may be far away", "30 late", 100],
    ["are one fewer with each answer that did not come in time", "30 never", 70],
    ["are ten at least", "300 never", 10],
    ["come back with answers that take as long as usual", "300 never, 300 usual", 100],
    ["stay where nothing was sent", "30 unsent", 100],
  ])("%s", (_, answers, places) => {
    expect(placesAfter(answers)).toBe(places);
  });

  test("do not become more while half of them are free", () => {
    const room = new Room();
    for (let taken = 0; taken < 49; taken += 1) room.take();
    for (let times = 0; times < 1_000; times += 1) {
      room.take();
      room.leave("early");
    }
    expect(49 + fill(room)).toBe(101);
  });

  test("are as at first after a pause", () => {
    const room = new Room(10);
    for (let left = fill(room); left > 0; left -= 1) room.leave("never");
    expect(fill(room)).toBe(100);
  });
});

test("on Workers there always is one more, because nothing may wait for another invocation", () => {
  vi.stubGlobal("navigator", { userAgent: "Cloudflare-Workers" });
  const room = new Room();
  for (let taken = 0; taken < 1_000; taken += 1) expect(room.take()).toBe(true);
  vi.unstubAllGlobals();
});

test("a place can be taken if there is none, and then there is one fewer", () => {
  const room = new Room();
  fill(room);
  room.squeeze();
  room.leave();
  expect(room.take()).toBe(false);
  room.leave();
  expect(room.take()).toBe(true);
});
