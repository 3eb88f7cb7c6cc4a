import { afterEach, describe, expect, test, vi } from "vitest";
import { roomOf, sendThrough } from "../../../src/endpoints/hand-over.ts";
import type { EndpointError } from "../../../src/errors/errors.ts";
import { rejection } from "../../support/outcomes.ts";

// A client is given 100 commands at first: see test/unit/endpoints/room.test.ts.

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** A client that the test answers. */
function rig() {
  const client = {};
  const given: number[] = [];
  const answers: ((reply: string) => void)[] = [];
  const through = sendThrough("client", {
    room: roomOf(client),
    call([number]) {
      given.push(Number(number));
      if (number === "-1") return Promise.reject(new Error("closed"));
      return new Promise<string>((resolve) => {
        answers[Number(number)] = resolve;
      });
    },
    errorOf: (error) => error as EndpointError,
  });
  const send = (number: number, signal = new AbortController().signal) => through([number], signal);
  return { client, given, answers, send };
}

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index);

afterEach(() => {
  vi.unstubAllGlobals();
});

describe("a client", () => {
  test("is given as many commands as there is room for, and the next ones in their order with each answer", async () => {
    const { given, answers, send } = rig();
    const replies = numbers(105).map((number) => send(number));
    expect(given).toEqual(numbers(100));
    answers[0]!("OK");
    expect(await replies[0]).toBe("OK");
    // In time: there is room for one more.
    expect(given).toEqual(numbers(102));
  });

  test("is not given a command whose caller gives up before, and the caller hears of it at once", async () => {
    const { given, answers, send } = rig();
    for (const number of numbers(100)) void send(number);
    const controller = new AbortController();
    const { signal } = controller;
    const [waiting, late] = [rejection(send(100, signal)), send(101)];
    controller.abort();
    expect(String(await waiting)).toContain("others were sent first");
    expect(String(await rejection(send(102, signal)))).toContain("others were sent first");
    answers[0]!("OK");
    await turn();
    answers[101]!("OK");
    expect(await late).toBe("OK");
    expect(given).toEqual([...numbers(100), 101]);
  });

  test("has what its callers have given up until it answers that, too", async () => {
    const { given, answers, send } = rig();
    const controller = new AbortController();
    const { signal } = controller;
    for (const number of numbers(100)) void send(number, signal);
    controller.abort();
    for (const number of [100, 101]) void send(number);
    await turn();
    expect(given).toHaveLength(100);
    answers[0]!("late");
    await turn();
    expect(given).toEqual(numbers(101));
  });

  test("is the same for all of its endpoints, and another client is another", () => {
    const { client } = rig();
    expect(roomOf(client)).toBe(roomOf(client));
    expect(roomOf({})).not.toBe(roomOf(client));
  });

  test("that fails has room for the next one", async () => {
    const { given, send } = rig();
    for (const number of numbers(99)) void send(number);
    const failing = send(-1);
    void send(99);
    expect(given).toHaveLength(100);
    expect(String(await rejection(failing))).toContain("closed");
    await turn();
    expect(given).toEqual([...numbers(99), -1, 99]);
  });

  test("on Workers is given everything: nothing may wait for another invocation", () => {
    vi.stubGlobal("navigator", { userAgent: "Cloudflare-Workers" });
    const { given, send } = rig();
    for (const number of numbers(150)) void send(number);
    expect(given).toHaveLength(150);
  });
});
