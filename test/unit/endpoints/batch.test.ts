import { afterEach, describe, expect, test, vi } from "vitest";
import { batchingSend, type Outcome, type Post } from "../../../src/endpoints/batch.ts";
import type { Command } from "../../../src/endpoints/endpoint.ts";
import { rejection } from "../../support/outcomes.ts";

// What is sent together, without a server; test/contract/endpoints/batches.test.ts has real ones.

/** A request under way. */
interface Sent {
  readonly commands: readonly Command[];
  readonly signal: AbortSignal;
  answer(outcomes: readonly Outcome[]): Promise<void>;
}

/** An endpoint whose requests the test answers. */
function rig(maxRequests = 6) {
  const sent: Sent[] = [];
  const post: Post = (batch, signal) => {
    const commands = batch.map(({ command }) => command);
    expect(batch.map(({ text }) => text)).toEqual(commands.map((command) => JSON.stringify(command)));
    return new Promise((resolve) => {
      const answer = async (outcomes: readonly Outcome[]) => {
        resolve(outcomes);
        await turn();
      };
      sent.push({ commands, signal, answer });
    });
  };
  const send = batchingSend({ name: "e", maxRequests, pipelines: true, post });
  return { sent, send: (command: Command, signal = forever) => send(command, signal) };
}

const forever = new AbortController().signal;
const turn = () => new Promise((resolve) => setImmediate(resolve));
const ping = (number: number): Command => ["PING", number];
const pings = (count: number): Command[] => Array.from({ length: count }, (_, number) => ping(number));
const echo = ({ commands }: Sent): Outcome[] => commands.map((command) => ({ reply: command[1] }));

afterEach(() => {
  vi.unstubAllGlobals();
});

describe("a request has at most", () => {
  test("1 000 commands", async () => {
    vi.stubGlobal("navigator", { userAgent: "Cloudflare-Workers" });
    const { sent, send } = rig();
    for (const command of pings(2_001)) void send(command);
    await turn();
    expect(sent.map(({ commands }) => commands.length)).toEqual([1_000, 1_000, 1]);
  });

  test.each([
    ["ASCII", "a", 512 * 1024],
    ["other characters", "é", 512 * 1024],
  ])("512 kB of %s, or one command that is larger", async (_, character, most) => {
    const { sent, send } = rig();
    const half = character.repeat(most / 2 / (character === "a" ? 1 : 3) - 20);
    for (const word of [half, half, half, half.repeat(3), "b"]) void send(["PING", word]);
    await turn();
    expect(sent.map(({ commands }) => commands.length)).toEqual([2, 1, 1, 1]);
  });
});

describe("where as many requests are open as may be", () => {
  test("what is asked waits, and is sent together in the order of the calls", async () => {
    const { sent, send } = rig(2);
    const sending: Promise<unknown>[] = [];
    for (const command of pings(5)) {
      sending.push(send(command));
      await turn();
    }
    expect(sent).toHaveLength(2);
    await sent[1]!.answer(echo(sent[1]!));
    expect(sent[2]!.commands).toEqual([ping(2), ping(3), ping(4)]);
    for (const request of sent) await request.answer(echo(request));
    expect(await Promise.all(sending)).toEqual([0, 1, 2, 3, 4]);
  });

  test("nothing is sent where nobody waits any more", async () => {
    const { sent, send } = rig();
    const { signal, abort } = abortable();
    abort();
    expect(await rejection(send(ping(0), signal))).toMatchObject({ kind: "timeout", unsent: true });
    expect(sent).toEqual([]);
  });

  test("a command whose caller gives up while it waits rejects at once, and is never sent", async () => {
    const { sent, send } = rig(1);
    void send(ping(0));
    await turn();
    const { signal, abort } = abortable();
    const waiting = [send(ping(1), signal), send(ping(2)), send(ping(3), signal)];
    await turn();
    abort();
    for (const index of [0, 2]) {
      expect(await rejection(waiting[index]!)).toMatchObject({
        unsent: true,
        message: expect.stringContaining("not sent in time"),
      });
    }
    await sent[0]!.answer(echo(sent[0]!));
    expect(sent[1]!.commands).toEqual([ping(2)]);
  });

  test("what a request of a Worker has left behind holds up no other", async () => {
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

  test.each([
    ["on Workers", () => vi.stubGlobal("navigator", { userAgent: "Cloudflare-Workers" })],
    ["in an edge runtime", () => vi.stubGlobal("EdgeRuntime", "edge-runtime")],
  ])("%s nothing waits for another invocation's request", async (_, pretend) => {
    pretend();
    const { sent, send } = rig(1);
    for (const command of pings(3)) {
      void send(command);
      await turn();
    }
    expect(sent).toHaveLength(3);
  });
});

describe("a request that several share", () => {
  test("goes on while one of them waits, and its answer counts for all", async () => {
    const { sent, send } = rig();
    const [first, second] = [abortable(), abortable()];
    const replies = [send(ping(1), first.signal), send(ping(2), second.signal)];
    await turn();
    first.abort();
    expect(sent[0]!.signal.aborted).toBe(false);
    await sent[0]!.answer(echo(sent[0]!));
    expect(await Promise.all(replies)).toEqual([1, 2]);
  });

  test.each([
    ["the first one", [0, 1, 2]],
    ["the last one", [2, 1, 0]],
  ])(
    "is given up once none waits, %s first, and makes room even if fetch does not notice",
    async (_, order) => {
      const { sent, send } = rig(1);
      const callers = pings(3).map((command) => ({ command, ...abortable() }));
      for (const { command, signal } of callers) void send(command, signal).catch(() => undefined);
      await turn();
      const next = send(ping(9));
      await turn();
      for (const index of order) {
        expect(sent[0]!.signal.aborted).toBe(false);
        callers[index]!.abort(new Error(`reason ${index}`));
      }
      expect(sent[0]!.signal.aborted).toBe(true);
      expect(String(sent[0]!.signal.reason)).toBe(`Error: reason ${order[2]}`);
      expect(sent[1]!.commands).toEqual([ping(9)]);
      await sent[1]!.answer(echo(sent[1]!));
      expect(await next).toBe(9);
      // Its answer is too late for the room that it has given back already.
      await sent[0]!.answer(echo(sent[0]!));
      for (const command of pings(2)) {
        void send(command);
        await turn();
      }
      expect(sent).toHaveLength(3);
    },
  );
});

test("a caller in JavaScript that gives no signal waits without a limit", async () => {
  const post: Post = async (batch) => batch.map(() => ({ reply: 1 }));
  const send = batchingSend({ name: "e", maxRequests: 1, pipelines: true, post });
  expect(await (send as (command: Command) => Promise<unknown>)(ping(1))).toBe(1);
});

/** A signal, and the function that ends it. */
function abortable() {
  const controller = new AbortController();
  return { signal: controller.signal, abort: (reason?: Error) => controller.abort(reason) };
}
