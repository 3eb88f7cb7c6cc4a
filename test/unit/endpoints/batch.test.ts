import { afterEach, describe, expect, test, vi } from "vitest";
import { batchingSend, type Outcome, type Post } from "../../../src/endpoints/batch.ts";
import type { Command } from "../../../src/endpoints/endpoint.ts";

// How large a request becomes, who gives it up, and what Workers need. What else is sent together: test/contract/endpoints.

/** An endpoint whose requests the test answers. */
function rig(maxRequests = 6) {
  const sent: { commands: Command[]; signal: AbortSignal; answer: (outcomes: Outcome[]) => void }[] = [];
  const post: Post = (batch, signal) =>
    new Promise((answer) => {
      sent.push({ commands: batch.map(({ command }) => command), signal, answer });
    });
  const send = batchingSend({ name: "e", maxRequests, pipelines: true, post });
  return { sent, send: (command: Command, signal = new AbortController().signal) => send(command, signal) };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));
const ping = (number: number): Command => ["PING", number];

afterEach(() => {
  vi.unstubAllGlobals();
});

describe("a request has at most", () => {
  test("1 000 commands", async () => {
    vi.stubGlobal("navigator", { userAgent: "Cloudflare-Workers" });
    const { sent, send } = rig();
    for (let number = 0; number < 2_001; number += 1) void send(ping(number));
    await turn();
    expect(sent.map(({ commands }) => commands.length)).toEqual([1_000, 1_000, 1]);
  });

  test.each([
    ["ASCII", "a", 1],
    ["other characters", "é", 3],
  ])("512 kB of %s, or one command that is larger", async (_, character, bytes) => {
    const { sent, send } = rig();
    const half = character.repeat((256 * 1024) / bytes - 20);
    for (const word of [half, half, half, half.repeat(3), "b"]) void send(["PING", word]);
    await turn();
    expect(sent.map(({ commands }) => commands.length)).toEqual([2, 1, 1, 1]);
  });
});

test("a request that several share is given up once none of them waits, and another has its place", async () => {
  const { sent, send } = rig(1);
  const callers = [new AbortController(), new AbortController()];
  for (const [index, { signal }] of callers.entries()) void send(ping(index), signal).catch(() => undefined);
  await turn();
  void send(ping(2));
  await turn();
  callers[0]!.abort();
  expect([sent.length, sent[0]!.signal.aborted]).toEqual([1, false]);
  callers[1]!.abort();
  expect([sent.length, sent[0]!.signal.aborted]).toEqual([2, true]);
});

describe("on Workers", () => {
  test.each([
    ["in workerd", () => vi.stubGlobal("navigator", { userAgent: "Cloudflare-Workers" })],
    ["in an edge runtime", () => vi.stubGlobal("EdgeRuntime", "edge-runtime")],
  ])("%s nothing waits for another invocation's request", async (_, pretend) => {
    pretend();
    const { sent, send } = rig(1);
    for (let number = 0; number < 3; number += 1) {
      void send(ping(number));
      await turn();
    }
    expect(sent).toHaveLength(3);
  });

  test("what a request has left behind holds up no other", async () => {
    vi.stubGlobal("navigator", { userAgent: "Cloudflare-Workers" });
    const { sent, send } = rig();
    const foreign = Object.defineProperty(new AbortController().signal, "aborted", {
      get(): boolean {
        throw new Error("Cannot perform I/O on behalf of a different request.");
      },
    });
    void send(ping(1), foreign);
    for (const command of [ping(2), ping(3)]) void send(command);
    await turn();
    expect(sent.map(({ commands }) => commands)).toEqual([[ping(2), ping(3)]]);
  });
});
