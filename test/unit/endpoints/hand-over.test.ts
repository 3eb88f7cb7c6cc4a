import { describe, expect, test } from "vitest";
import { sendThrough } from "../../../src/endpoints/hand-over.ts";
import { Room } from "../../../src/endpoints/room.ts";
import type { EndpointError } from "../../../src/errors/errors.ts";
import { rejection } from "../../support/outcomes.ts";

// A client is given 100 commands at first: see test/unit/endpoints/room.test.ts.

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** A client that the test answers. */
function rig() {
  const given: number[] = [];
  const answers: ((reply: string) => void)[] = [];
  const through = sendThrough("client", {
    room: new Room(),
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
  return { given, answers, send };
}

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index);

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
});
