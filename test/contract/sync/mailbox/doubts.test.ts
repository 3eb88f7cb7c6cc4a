import { expect, test } from "vitest";
import { Redlock } from "../../../../src/index.ts";
import type { FailedMessage } from "../../../../src/sync/index.ts";
import { watch } from "../../../support/virtual-client.ts";
import { never, newWorld, nothing, ttl } from "./world.ts";

// Where endpoints know different things, clocks differ, or a process has ended: what the simulator finds seldom.

test("a handler that reads nothing ends the turn, even if too few endpoints have the message", async () => {
  const { runtime, client, end, within, post, mailbox } = newWorld();
  const cut = client({ wait: 0 });
  end({ ...cut, links: cut.links.slice(1) });
  watch(post(cut, "a"));
  await runtime.advance(500);
  expect(await within(10, mailbox(client().redlock).drain(nothing))).toEqual({ handled: 0, left: 1 });
});

test("messages that one endpoint shows, and others have further back, do not keep the turn from going on", async () => {
  const { client, end, handled, within, post, mailbox, slowly } = newWorld();
  const [partly, whole] = [client(), client()];
  end({ ...partly, links: partly.links.slice(2) });
  const ids = Array.from({ length: 40 }, (_, index) => `m${index}`);
  for (const [index, id] of ids.entries()) {
    await within(500, post(index < 34 ? partly : whole, id, nothing));
  }
  expect(await within(100, mailbox(whole.redlock).drain(slowly(0)))).toEqual({ handled: 40, left: 0 });
  expect(handled).toEqual(ids);
});

test("messages that two endpoints hide behind many others do not keep the turn from going on", async () => {
  const { runtime, client, end, handled, within, slow, post, mailbox, slowly } = newWorld();
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
  for (const id of [...between, "a", "b"]) await within(500, post(whole, id, nothing));
  const { redlock, links } = client();
  let claims = 0;
  links[2]!.fate = () => (claims++ === 0 ? slow(5) : "delivered");
  links[1]!.fate = (command) => (command.includes("post") ? "delivered" : slow(5));
  expect(await within(1_000, mailbox(redlock).drain(slowly(0)))).toEqual({ handled: 35, left: 0 });
  expect(handled).toEqual(["a", "b", ...between]);
});

test("a claim that is undone late does not pass for a turn that was closed meanwhile", async () => {
  const { runtime, endpoints, client, within, late, each, post } = newWorld();
  const behind = { ...runtime, now: () => runtime.now() - 5_000 };
  await within(10, post(client(), "a"));
  const { links } = client();
  let requests = 0;
  // The first round is refused for its stamp, and at the third endpoint executed once the next round's turn is over.
  links[2]!.fate = () => (requests++ === 0 ? late(150) : "delivered");
  const slow = new Redlock({ endpoints: links, runtime: behind });
  expect(await within(50, post({ redlock: slow }, "b"))).toEqual({ status: "handled", left: 0 });
  // As after a restart without its memory.
  endpoints[2]!.engine.execute(["FLUSHALL"]);
  await runtime.advance(500);
  expect(each("EXISTS", "mailbox", "m")).toEqual([0, 0, 0]);
});

test("a post that is executed again learns that it has the turn, even once its message is handled", async () => {
  const { runtime, endpoints, first, second, hold, handled, post } = newWorld();
  await hold();
  watch(post(second, "b"));
  await runtime.advance(80);
  const [sent] = first.links[0]!.sent;
  const [token, ...reply] = (await endpoints[0]!.send(sent!, new AbortController().signal)) as unknown[];
  expect(reply).toEqual([
    "stored",
    token,
    [expect.stringContaining("b"), ...Array(4).fill(expect.anything())],
  ]);
  await runtime.advance(100);
  expect(handled).toEqual(["a", "b"]);
});

test("a turn that cannot be extended after a refused close is taken again", async () => {
  const { runtime, first, second, hold, slowly, handled, post } = newWorld();
  const holding = await hold();
  watch(post(second, "b", slowly(50)));
  await runtime.advance(10);
  // The extension that follows the refused close.
  for (const link of first.links) {
    let extensions = 0;
    link.fate = (command) => (command.includes("keep") && extensions++ === 0 ? "lost" : "delivered");
  }
  await runtime.advance(2_000);
  expect([holding.value, handled]).toEqual([{ status: "handled", left: 0 }, ["a", "b"]]);
});

test("a close is decided by all answers, where some have lost the turn", async () => {
  const { runtime, first, hold, leave, handled, at, late } = newWorld();
  const holding = await hold();
  at([0], "DEL", "mailbox", "m");
  await leave(["b"]);
  first.links[2]!.fate = () => late(5);
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
  const { runtime, first, second, hold, end, mailbox, slowly } = newWorld();
  const given: FailedMessage<string>[] = [];
  const options = { maxAttempts: 1, onFailed: (message: FailedMessage<string>) => given.push(message) };
  await hold(never, { options });
  end(first);
  await runtime.advance(ttl);
  const draining = watch(mailbox(second.redlock, options).drain(slowly(0)));
  await runtime.advance(10);
  expect(draining.error).toEqual(new Error('the message "a" has failed 1 times'));
  expect(given).toEqual([{ id: "a", value: "a", attempts: 1, error: undefined }]);
});

test("a handler that runs beyond the deadline leaves its message", async () => {
  const { runtime, hold, slowly } = newWorld();
  const posting = await hold(slowly(400), { deadline: runtime.now() + 300 });
  await runtime.advance(1_000);
  expect(posting.value).toEqual({ status: "queued", left: 1 });
});
