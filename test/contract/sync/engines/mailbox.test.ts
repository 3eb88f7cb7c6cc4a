import { expect, test } from "vitest";
import { Mailbox, type MailboxHandler } from "../../../../src/sync/index.ts";
import { gate } from "../../../support/link.ts";
import { newResource } from "../../../support/local-endpoints.ts";
import { onStores } from "../stand.ts";

// What can differ by engine, number of endpoints and dialect: scripts and replies, and values of any text.

onStores([1, 3], [1, 3], (at) => {
  const collect =
    (into: unknown[]): MailboxHandler<unknown> =>
    async (messages) => {
      for await (const { id, value } of messages) into.push([id, value]);
    };

  test("hands out each message once, as it was posted, in order", async () => {
    const name = newResource("{mail}:0");
    const values = [1, null, '{"a":1}', { a: [1, "2"], ü: "🔒\u0000" }, "", 1e21];
    const handled: unknown[] = [];
    const [begun, over] = [gate(), gate()];
    const holding = new Mailbox<unknown>(at.first.redlock, name).post(
      { id: "0", value: values[0] },
      async (messages) => {
        begun.open();
        await over.passed;
        await collect(handled)(messages, {} as never);
      },
    );
    await begun.passed;
    const others = new Mailbox<unknown>(at.second.redlock, name);
    for (const [index, value] of values.entries()) {
      if (index === 0) continue;
      expect((await others.post({ id: String(index), value }, collect(handled))).status).toBe("queued");
    }
    expect(await others.inspect()).toEqual({
      isHeld: true,
      holder: expect.stringMatching(/^[0-9a-f]{12}$/),
      waiting: values.length,
    });
    over.open();
    expect(await holding).toEqual({ status: "handled", left: 0 });
    expect(handled).toEqual(values.map((value, index) => [String(index), value]));
    expect((await others.post({ id: "0", value: values[0] }, collect(handled))).status).toBe("duplicate");
    expect(handled).toHaveLength(values.length);
    expect(await others.inspect()).toEqual({ isHeld: false, waiting: 0 });
  });

  test("fails at a message, and hands it out again", async () => {
    const name = newResource("mail");
    const mailbox = new Mailbox<unknown>(at.first.redlock, name);
    const attempts: number[] = [];
    const handler: MailboxHandler<unknown> = async (messages) => {
      for await (const { attempt } of messages) if (attempts.push(attempt) < 3) throw new Error("no");
    };
    await expect(mailbox.post({ id: "a", value: 1 }, handler)).rejects.toThrow("no");
    await expect(mailbox.post({ id: "a", value: 1 }, handler)).rejects.toThrow("no");
    expect((await mailbox.drain(handler)).handled).toBe(1);
    expect(attempts).toEqual([1, 2, 3]);
  });
});
