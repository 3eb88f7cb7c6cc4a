import { expect, test } from "vitest";
import { Redlock } from "../../../../src/index.ts";
import { type FailedMessage, Mailbox } from "../../../../src/sync/index.ts";
import { watch } from "../../../support/virtual-client.ts";
import { never, newWorld, nothing, ttl } from "./world.ts";

// Where endpoints know different things, clocks differ, or a process has ended: what the simulator has found.

test("a message of a client whose clock is behind comes after those that were acknowledged", async () => {
  const { runtime, client, slowly, handled, after, late, post } = newWorld();
  watch(post(client(), "a", slowly(50)));
  await after(10, post(client(), "b"));
  const { links } = client();
  for (const link of links) link.fate = () => late(25);
  const behind = { ...runtime, now: () => runtime.now() - 5_000 };
  const slow = new Redlock({ endpoints: links, runtime: behind });
  expect(await after(90, post({ redlock: slow }, "c"))).toMatchObject({ status: "queued" });
  await runtime.advance(200);
  expect(handled).toEqual(["a", "b", "c"]);
});

test("a post takes the turn of a full mailbox, if nobody has it", async () => {
  const { runtime, client, end, handled, after, post } = newWorld();
  const options = { maxSize: 2 };
  const dying = client();
  watch(post(dying, "a", never, { options }));
  await after(10, post(client(), "b", undefined, { options }));
  end(dying);
  await runtime.advance(ttl);
  expect(await after(10, post(client(), "c", undefined, { options }))).toEqual({
    status: "handled",
    left: 0,
  });
  expect(handled).toEqual(["a", "b", "c"]);
});

test("a handler that reads nothing ends the turn, even if too few endpoints have the message", async () => {
  const { runtime, client, end, after, post, mailbox } = newWorld();
  const cut = client({ wait: 0 });
  end({ ...cut, links: cut.links.slice(1) });
  watch(post(cut, "a"));
  await runtime.advance(500);
  expect(await after(10, mailbox(client().redlock).drain(nothing))).toEqual({ handled: 0, left: 1 });
});

test("messages that one endpoint shows, and others have further back, do not keep the turn from going on", async () => {
  const { client, end, handled, after, post, mailbox, slowly } = newWorld();
  const [partly, whole] = [client(), client()];
  end({ ...partly, links: partly.links.slice(2) });
  const ids = Array.from({ length: 40 }, (_, index) => `m${index}`);
  for (const [index, id] of ids.entries()) {
    await after(500, post(index < 34 ? partly : whole, id, nothing));
  }
  expect(await after(100, mailbox(whole.redlock).drain(slowly(0)))).toEqual({ handled: 40, left: 0 });
  expect(handled).toEqual(ids);
});

test("messages that two endpoints hide behind many others do not keep the turn from going on", async () => {
  const { runtime, client, end, handled, after, slow, post, mailbox, slowly } = newWorld();
  const [first, second, whole] = [client({ wait: 0 }), client({ wait: 0 }), client()];
  end({ ...first, links: first.links.slice(1) });
  end({ ...second, links: second.links.slice(0, 2) });
  // The first endpoint has a before all others, and the third one b. Elsewhere they come after 33 others.
  for (const [cut, id] of [
    [first, "a"],
    [second, "b"],
  ] as const) {
    watch(post(cut, id, nothing));
    await runtime.advance(2_000);
  }
  const between = Array.from({ length: 33 }, (_, index) => `m${index}`);
  for (const id of [...between, "a", "b"]) await after(500, post(whole, id, nothing));
  const { redlock, links } = client();
  let claims = 0;
  links[2]!.fate = () => (claims++ === 0 ? slow(5) : "delivered");
  links[1]!.fate = (command) => (command.includes("post") ? "delivered" : slow(5));
  expect(await after(1_000, mailbox(redlock).drain(slowly(0)))).toEqual({ handled: 35, left: 0 });
  expect(handled).toEqual(["a", "b", ...between]);
});

test("a claim that is undone late does not pass for a turn that was closed meanwhile", async () => {
  const { runtime, endpoints, client, after, late, each, post } = newWorld();
  const behind = { ...runtime, now: () => runtime.now() - 5_000 };
  await after(10, post(client(), "a"));
  const { links } = client();
  let requests = 0;
  // The first round is refused for its stamp, and at the third endpoint executed once the next round's turn is over.
  links[2]!.fate = () => (requests++ === 0 ? late(150) : "delivered");
  const slow = new Redlock({ endpoints: links, runtime: behind });
  expect(await after(50, post({ redlock: slow }, "b"))).toEqual({ status: "handled", left: 0 });
  // As after a restart without its memory.
  endpoints[2]!.engine.execute(["FLUSHALL"]);
  await runtime.advance(500);
  expect(each("EXISTS", "mailbox", "m")).toEqual([0, 0, 0]);
});

test("a post that is executed again learns that it has the turn, even once its message is handled", async () => {
  const { runtime, endpoints, client, slowly, handled, post } = newWorld();
  const holder = client();
  watch(post(holder, "a", slowly(50)));
  await runtime.advance(10);
  watch(post(client(), "b"));
  await runtime.advance(80);
  const [sent] = holder.links[0]!.sent;
  const [token, ...reply] = (await endpoints[0]!.send(sent!, new AbortController().signal)) as unknown[];
  expect(reply).toEqual([
    "stored",
    token,
    [expect.stringContaining("b"), ...Array(4).fill(expect.anything())],
  ]);
  await runtime.advance(100);
  expect(handled).toEqual(["a", "b"]);
});

test("a message that the holder puts at an endpoint expires there with its value", async () => {
  const { runtime, client, end, each, post, mailbox } = newWorld();
  const [cut, dying] = [client({ wait: 0 }), client()];
  end({ ...cut, links: cut.links.slice(1) });
  watch(post(cut, "a", nothing));
  await runtime.advance(2_000);
  watch(mailbox(dying.redlock).drain(never));
  await runtime.advance(10);
  const [order, values] = [each("PTTL", "mailbox-order", "m"), each("PTTL", "mailbox-values", "m")];
  expect(order).toEqual(values);
  expect(order.every((ms) => (ms as number) > 0)).toBe(true);
});

test("a turn that cannot be extended after a refused close is taken again", async () => {
  const { runtime, client, slowly, handled, post } = newWorld();
  const holder = client();
  const holding = watch(post(holder, "a", slowly(50)));
  await runtime.advance(10);
  watch(post(client(), "b", slowly(50)));
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
  const { runtime, client, slowly, handled, after, at, late, post } = newWorld();
  const holder = client();
  const holding = watch(post(holder, "a", slowly(50)));
  await runtime.advance(10);
  at([0], "DEL", "mailbox", "m");
  await after(10, post(client(), "b"));
  holder.links[2]!.fate = () => late(5);
  await runtime.advance(200);
  expect([holding.value, handled]).toEqual([{ status: "handled", left: 0 }, ["a", "b"]]);
});

test("a turn that is extended while an endpoint is slow to let it go is not lost", async () => {
  const { runtime, client, slowly, late, post } = newWorld();
  const ends: string[] = [];
  const onEvent = ({ type }: { readonly type: string }) => {
    if (type === "released" || type === "lost") ends.push(type);
  };
  const holder = client({ onEvent });
  const holding = watch(post(holder, "a", slowly(450)));
  await runtime.advance(440);
  holder.links[2]!.fate = () => late(300);
  await runtime.advance(1_000);
  expect([holding.value?.status, ends]).toEqual(["handled", ["released"]]);
});

test("who finds only a message that is given up is told so", async () => {
  const { runtime, client, end, post, mailbox, slowly } = newWorld();
  const given: FailedMessage<string>[] = [];
  const options = { maxAttempts: 1, onFailed: (message: FailedMessage<string>) => given.push(message) };
  const dying = client();
  watch(post(dying, "a", never, { options }));
  await runtime.advance(10);
  end(dying);
  await runtime.advance(ttl);
  const draining = watch(mailbox(client().redlock, options).drain(slowly(0)));
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
