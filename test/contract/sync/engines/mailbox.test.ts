import { afterAll, beforeAll, expect, test } from "vitest";
import { Mailbox, type MailboxHandler } from "../../../../src/sync/index.ts";
import { eachInTurns } from "../../../support/in-turns.ts";
import { newResource } from "../../../support/local-endpoints.ts";
import { allArrived, type OpenStore } from "../../../support/stores.ts";
import { until } from "../../../support/until.ts";
import { costOf, stores, type Visitor, visitor } from "../stand.ts";

// What can differ by engine, number of endpoints and dialect: scripts and replies, values of any text, and what is billed.

eachInTurns(stores([1, 3], [1, 3]))("a mailbox on $title", ({ open, engine }) => {
  let store: OpenStore;
  let first: Visitor;
  let second: Visitor;

  beforeAll(async () => {
    store = await open();
    first = visitor(store);
    second = visitor(store);
  });
  afterAll(() => store.close());

  const collect =
    (into: unknown[]): MailboxHandler<unknown> =>
    async (messages) => {
      for await (const { id, value } of messages) into.push([id, value]);
    };

  test("hands out each message once, as it was posted, in order", async () => {
    const name = newResource("{mail}:0");
    const values = [1, null, '{"a":1}', { a: [1, "2"], ü: "🔒\u0000" }, "", 1e21];
    const handled: unknown[] = [];
    let proceed = (): void => undefined;
    const gate = new Promise<void>((resolve) => {
      proceed = resolve;
    });
    let hasBegun = false;
    const holding = new Mailbox<unknown>(first.redlock, name).post(
      { id: "0", value: values[0] },
      async (messages) => {
        hasBegun = true;
        await gate;
        await collect(handled)(messages, {} as never);
      },
    );
    await until(() => hasBegun);
    const others = new Mailbox<unknown>(second.redlock, name);
    for (const [index, value] of values.entries()) {
      if (index === 0) continue;
      expect((await others.post({ id: String(index), value }, collect(handled))).status).toBe("queued");
    }
    expect(await others.inspect()).toEqual({
      isHeld: true,
      holder: expect.stringMatching(/^[0-9a-f]{12}$/),
      waiting: values.length,
    });
    proceed();
    expect(await holding).toEqual({ status: "handled", left: 0 });
    expect(handled).toEqual(values.map((value, index) => [String(index), value]));
    expect((await others.post({ id: "0", value: values[0] }, collect(handled))).status).toBe("duplicate");
    expect(handled).toHaveLength(values.length);
    expect(await others.inspect()).toEqual({ isHeld: false, waiting: 0 });
  });

  test("fails at a message, and hands it out again", async () => {
    const name = newResource("mail");
    const mailbox = new Mailbox<unknown>(first.redlock, name);
    const attempts: number[] = [];
    const handler: MailboxHandler<unknown> = async (messages) => {
      for await (const { attempt } of messages) if (attempts.push(attempt) < 3) throw new Error("no");
    };
    await expect(mailbox.post({ id: "a", value: 1 }, handler)).rejects.toThrow("no");
    await expect(mailbox.post({ id: "a", value: 1 }, handler)).rejects.toThrow("no");
    expect((await mailbox.drain(handler)).handled).toBe(1);
    expect(attempts).toEqual([1, 2, 3]);
  });

  // A lock server bills no commands.
  if (engine === "durable") return;
  test("costs the requests and commands that are documented", async () => {
    const own = visitor(store);
    const name = newResource("mail");
    const mailbox = new Mailbox<unknown>(own.redlock, name);
    const post = (id: string) => mailbox.post({ id, value: id }, collect([]));
    await post("warm");
    await allArrived(own.links);
    // Takes the turn with the message, and lets it go.
    expect(await costOf(store, own, () => post("a"))).toEqual([2, 20]);
    let queued: number[] | undefined;
    const turn = await costOf(store, own, async () => {
      await mailbox.post({ id: "b", value: 1 }, async (messages) => {
        await collect([])(messages, {} as never);
        queued ??= await costOf(store, own, () => post("c"));
      });
    });
    // Joins the queue.
    expect(queued).toEqual([1, 9]);
    // The turn, what joins it, the step to that, and the extension after a close that was refused.
    expect(turn).toEqual([2 + 1 + 1 + 1, 20 + 9 + 9 + 3]);
  });
});
