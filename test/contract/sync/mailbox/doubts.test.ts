import { expect, test } from "vitest";
import { Redlock } from "../../../../src/index.ts";
import {
  type FailedMessage,
  Mailbox,
  type MailboxHandler,
  type MailboxOptions,
} from "../../../../src/sync/index.ts";
import { mailboxScript } from "../../../../src/sync/internal/mailbox.lua.ts";
import { watch } from "../../../support/virtual-client.ts";
import { syncWorld } from "../../../support/virtual-sync.ts";

// Where endpoints know different things, clocks differ, or a process has ended: what the simulator has found.

const ttl = 1_000;

function newWorld() {
  const world = syncWorld([mailboxScript]);
  const { runtime } = world;
  const handled: string[] = [];
  const pause = (ms: number) => new Promise<void>((resolve) => void runtime.timer(ms, resolve));
  const slowly =
    (ms: number): MailboxHandler<string> =>
    async (messages) => {
      for await (const { value } of messages) {
        await pause(ms);
        handled.push(value);
      }
    };
  const open = (redlock: Redlock, options: MailboxOptions<string> = {}) => {
    const mailbox = new Mailbox<string>(redlock, "m", { ttl, ...options });
    return {
      post: (id: string, handler: MailboxHandler<string> = slowly(0)) =>
        mailbox.post({ id, value: id }, handler),
      drain: (handler: MailboxHandler<string> = slowly(0)) => mailbox.drain(handler),
    };
  };
  /** A client whose requests no longer arrive from now on, as those of a process that has ended. */
  const end = ({ links }: ReturnType<typeof world.client>) => {
    for (const link of links) link.fate = () => "lost";
  };
  const after = async <Value>(ms: number, call: Promise<Value>) => {
    const watched = watch(call);
    await runtime.advance(ms);
    if (!watched.settled) throw new Error(`it takes more than ${ms} ms`);
    return call;
  };
  return { ...world, handled, slowly, open, end, after };
}

const never: MailboxHandler<string> = () => new Promise(() => undefined);
const nothing: MailboxHandler<string> = () => undefined;

test("a message of a client whose clock is behind comes after those that were acknowledged", async () => {
  const { runtime, client, open, slowly, handled, after, late } = newWorld();
  watch(open(client().redlock).post("a", slowly(50)));
  await after(10, open(client().redlock).post("b"));
  const { links } = client();
  for (const link of links) link.fate = () => late(25);
  const behind = { ...runtime, now: () => runtime.now() - 5_000 };
  const slow = new Redlock({ endpoints: links, runtime: behind });
  expect(await after(90, open(slow).post("c"))).toMatchObject({ status: "queued" });
  await runtime.advance(200);
  expect(handled).toEqual(["a", "b", "c"]);
});

test("a post takes the turn of a full mailbox, if nobody has it", async () => {
  const { runtime, client, open, end, handled, after } = newWorld();
  const options = { maxSize: 2 };
  const dying = client();
  watch(open(dying.redlock, options).post("a", never));
  await after(10, open(client().redlock, options).post("b"));
  end(dying);
  await runtime.advance(ttl);
  expect(await after(10, open(client().redlock, options).post("c"))).toEqual({ status: "handled", left: 0 });
  expect(handled).toEqual(["a", "b", "c"]);
});

test("a handler that reads nothing ends the turn, even if too few endpoints have the message", async () => {
  const { runtime, client, open, end, after } = newWorld();
  const cut = client({ wait: 0 });
  end({ ...cut, links: cut.links.slice(1) });
  watch(open(cut.redlock).post("a"));
  await runtime.advance(500);
  expect(await after(10, open(client().redlock).drain(nothing))).toEqual({ handled: 0, left: 1 });
});

test("messages that one endpoint shows, and others have further back, do not keep the turn from going on", async () => {
  const { client, open, end, handled, after } = newWorld();
  const [partly, whole] = [client(), client()];
  end({ ...partly, links: partly.links.slice(2) });
  const ids = Array.from({ length: 40 }, (_, index) => `m${index}`);
  for (const [index, id] of ids.entries()) {
    await after(500, open((index < 34 ? partly : whole).redlock).post(id, nothing));
  }
  expect(await after(100, open(whole.redlock).drain())).toEqual({ handled: 40, left: 0 });
  expect(handled).toEqual(ids);
});

test("messages that two endpoints hide behind many others do not keep the turn from going on", async () => {
  const { runtime, client, open, end, handled, after, slow } = newWorld();
  const [first, second, whole] = [client({ wait: 0 }), client({ wait: 0 }), client()];
  end({ ...first, links: first.links.slice(1) });
  end({ ...second, links: second.links.slice(0, 2) });
  // The first endpoint has a before all others, and the third one b. Elsewhere they come after 33 others.
  for (const [{ redlock }, id] of [
    [first, "a"],
    [second, "b"],
  ] as const) {
    watch(open(redlock).post(id, nothing));
    await runtime.advance(2_000);
  }
  const between = Array.from({ length: 33 }, (_, index) => `m${index}`);
  for (const id of [...between, "a", "b"]) await after(500, open(whole.redlock).post(id, nothing));
  const { redlock, links } = client();
  let claims = 0;
  links[2]!.fate = () => (claims++ === 0 ? slow(5) : "delivered");
  links[1]!.fate = (command) => (command.includes("post") ? "delivered" : slow(5));
  expect(await after(1_000, open(redlock).drain())).toEqual({ handled: 35, left: 0 });
  expect(handled).toEqual(["a", "b", ...between]);
});

test("a claim that is undone late does not pass for a turn that was closed meanwhile", async () => {
  const { runtime, endpoints, client, open, after, late, each } = newWorld();
  const behind = { ...runtime, now: () => runtime.now() - 5_000 };
  await after(10, open(client().redlock).post("a"));
  const { links } = client();
  let requests = 0;
  // The first round is refused for its stamp, and at the third endpoint executed once the next round's turn is over.
  links[2]!.fate = () => (requests++ === 0 ? late(150) : "delivered");
  const slow = new Redlock({ endpoints: links, runtime: behind });
  expect(await after(50, open(slow).post("b"))).toEqual({ status: "handled", left: 0 });
  // As after a restart without its memory.
  endpoints[2]!.engine.execute(["FLUSHALL"]);
  await runtime.advance(500);
  expect(each("EXISTS", "mailbox", "m")).toEqual([0, 0, 0]);
});

test("a post that is executed again learns that it has the turn, even once its message is handled", async () => {
  const { runtime, endpoints, client, open, slowly, handled } = newWorld();
  const holder = client();
  watch(open(holder.redlock).post("a", slowly(50)));
  await runtime.advance(10);
  watch(open(client().redlock).post("b"));
  await runtime.advance(80);
  const [post] = holder.links[0]!.sent;
  const [token, ...reply] = (await endpoints[0]!.send(post!, new AbortController().signal)) as unknown[];
  expect(reply).toEqual([
    "stored",
    token,
    [expect.stringContaining("b"), ...Array(4).fill(expect.anything())],
  ]);
  await runtime.advance(100);
  expect(handled).toEqual(["a", "b"]);
});

test("a message that the holder puts at an endpoint expires there with its value", async () => {
  const { runtime, client, open, end, each } = newWorld();
  const [cut, dying] = [client({ wait: 0 }), client()];
  end({ ...cut, links: cut.links.slice(1) });
  watch(open(cut.redlock).post("a", nothing));
  await runtime.advance(2_000);
  watch(open(dying.redlock).drain(never));
  await runtime.advance(10);
  const [order, values] = [each("PTTL", "mailbox-order", "m"), each("PTTL", "mailbox-values", "m")];
  expect(order).toEqual(values);
  expect(order.every((ms) => (ms as number) > 0)).toBe(true);
});

test("a turn that cannot be extended after a refused close is taken again", async () => {
  const { runtime, client, open, slowly, handled } = newWorld();
  const holder = client();
  const holding = watch(open(holder.redlock).post("a", slowly(50)));
  await runtime.advance(10);
  watch(open(client().redlock).post("b", slowly(50)));
  await runtime.advance(10);
  // The extension that follows the refused close.
  for (const link of holder.links) {
    let extensions = 0;
    link.fate = (command) => (command.includes("keep") && extensions++ === 0 ? "lost" : "delivered");
  }
  await runtime.advance(2_000);
  expect([holding.value, handled]).toEqual([{ status: "handled", left: 0 }, ["a", "b"]]);
});

test("a close is decided by all answers, where some have lost the turn", async () => {
  const { runtime, client, open, slowly, handled, after, at, late } = newWorld();
  const holder = client();
  const holding = watch(open(holder.redlock).post("a", slowly(50)));
  await runtime.advance(10);
  at([0], "DEL", "mailbox", "m");
  await after(10, open(client().redlock).post("b"));
  holder.links[2]!.fate = () => late(5);
  await runtime.advance(200);
  expect([holding.value, handled]).toEqual([{ status: "handled", left: 0 }, ["a", "b"]]);
});

test("a turn that is extended while an endpoint is slow to let it go is not lost", async () => {
  const { runtime, client, open, slowly, late } = newWorld();
  const ends: string[] = [];
  const onEvent = ({ type }: { readonly type: string }) => {
    if (type === "released" || type === "lost") ends.push(type);
  };
  const holder = client({ onEvent });
  const holding = watch(open(holder.redlock).post("a", slowly(450)));
  await runtime.advance(440);
  holder.links[2]!.fate = () => late(300);
  await runtime.advance(1_000);
  expect([holding.value?.status, ends]).toEqual(["handled", ["released"]]);
});

test("who finds only a message that is given up is told so", async () => {
  const { runtime, client, open, end } = newWorld();
  const given: FailedMessage<string>[] = [];
  const options = { maxAttempts: 1, onFailed: (message: FailedMessage<string>) => given.push(message) };
  const dying = client();
  watch(open(dying.redlock, options).post("a", never));
  await runtime.advance(10);
  end(dying);
  await runtime.advance(ttl);
  const draining = watch(open(client().redlock, options).drain());
  await runtime.advance(10);
  expect(draining.error).toEqual(new Error('the message "a" has failed 1 times'));
  expect(given).toEqual([{ id: "a", value: "a", attempts: 1, error: undefined }]);
});

test("a handler that runs beyond the deadline leaves its message", async () => {
  const { runtime, client, slowly } = newWorld();
  const mailbox = new Mailbox<string>(client().redlock, "m", { ttl });
  const deadline = runtime.now() + 300;
  const posting = watch(mailbox.post({ id: "a", value: "a" }, slowly(400), { deadline }));
  await runtime.advance(1_000);
  expect(posting.value).toEqual({ status: "queued", left: 1 });
});
