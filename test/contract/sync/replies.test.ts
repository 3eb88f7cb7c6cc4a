import { expect, test, vi } from "vitest";
import { Redlock } from "../../../src/index.ts";
import { forceRelease, Mailbox, once, Semaphore } from "../../../src/sync/index.ts";
import { virtualWorld, watch } from "../../support/virtual-client.ts";
import { everyCall } from "./every-call.ts";
import { holders } from "./holders.ts";

// An endpoint whose reply to a script is not what the script replies: an error of that endpoint, never a result.

type Call = (redlock: Redlock) => Promise<unknown>;

const stranger = `t${"0".repeat(32)}`;
/** What no script replies. */
const nothing: unknown[] = ["OK", "x", true, null, 0.5, [], [1], [stranger, 1, "ff"]];

/** Replies of which a part is missing, or of another type; of a list in them the end or the first one. */
function changesOf(reply: unknown): unknown[] {
  if (!Array.isArray(reply) || reply.length === 0) return [];
  const changes: unknown[] = Array.isArray(reply.at(-1)) ? [] : [reply.slice(0, -1)];
  for (const [index, part] of reply.entries()) {
    const others = Array.isArray(part) && part.length > 0 ? changesOf(part).slice(0, 2) : [{}];
    for (const other of others) changes.push(Object.assign([...reply], { [index]: other }));
  }
  return changes;
}

/** How a call ends if the reply at this place, among those to its scripts, is changed; and that reply as it was. */
async function becomes(call: Call, place: number, change: (reply: unknown) => unknown) {
  const { endpoints, runtime } = virtualWorld({ count: 1 });
  const [endpoint] = endpoints as [(typeof endpoints)[0]];
  const replies: unknown[] = [];
  const send: typeof endpoint.send = async (command, signal) => {
    const reply = await endpoint.send(command, signal);
    if (!String(command[0]).startsWith("EVAL")) return reply;
    replies.push(reply);
    return replies.length === place + 1 ? change(reply) : reply;
  };
  const ended = watch(call(new Redlock({ endpoints: [{ ...endpoint, send }], runtime, wait: 0 })));
  await runtime.advance(1_000);
  return { ended, reply: replies[place], asked: replies.length };
}

const { "Mailbox.drain": _asAPost, ...waiting } = everyCall;
const frees = ["Semaphore", "FairLock", "CountDownLatch", "once"] as const;
/** Calls of which the first reply is changed. */
const calls: Record<string, Call> = {
  "Semaphore.inspect": (redlock) => new Semaphore(redlock, "n", { limit: 2 }).inspect(),
  "Mailbox.inspect": (redlock) => new Mailbox(redlock, "n").inspect(),
};
for (const [name, call] of Object.entries(waiting))
  calls[name] = (redlock) => call(redlock, { wait: 0 } as never);
for (const kind of frees) calls[`forceRelease of a ${kind}`] = (redlock) => forceRelease(redlock, kind, "n");
/** Those of which the second is. */
const later: Record<string, Call> = {
  "once that is refused": async (redlock) => {
    await once(redlock, "n", { every: 60_000 }, () => 1);
    return once(redlock, "n", { every: 60_000, wait: 0 }, () => 1);
  },
};
for (const { title, acquire, tryAnother } of holders) {
  later[`a refusal of ${title}`] = async (redlock) => {
    await acquire(redlock, "n");
    return tryAnother(redlock, "n");
  };
  if (title === "a fair lock") continue;
  later[`an extension of ${title}`] = async (redlock) => (await acquire(redlock, "n")).extend();
}

test.each([
  ...Object.entries(calls).map(([name, call]) => [name, call, 0] as const),
  ...Object.entries(later).map(([name, call]) => [name, call, name.startsWith("once") ? 2 : 1] as const),
])("%s takes no reply that its script cannot have given", async (_, call, place) => {
  // With its true reply a mailbox calls the handler, which fails.
  using _line = vi.spyOn(console, "warn").mockReturnValue();
  const { reply } = await becomes(call, place, (usual) => usual);
  const others = [...nothing, ...changesOf(reply)];
  if (Array.isArray(reply)) others.push([stranger, ...reply.slice(1)]);
  for (const other of others) {
    const { ended } = await becomes(call, place, () => other);
    expect(String(ended.error), JSON.stringify(other)).toMatch(/unexpected reply|has foreign data/);
  }
});

test("the end of a mailbox's turn takes none either: it is asked for again", async () => {
  const call: Call = (redlock) =>
    new Mailbox(redlock, "n").post({ id: "a", value: 1 }, async (messages) => {
      for await (const _ of messages);
    });
  const { reply, asked } = await becomes(call, 1, (usual) => usual);
  for (const other of [...nothing, ...changesOf(reply)]) {
    expect((await becomes(call, 1, () => other)).asked, JSON.stringify(other)).toBeGreaterThan(asked);
  }
});
