import type { Redlock } from "../../src/index.ts";
import { Mailbox } from "../../src/sync/index.ts";
import { gate } from "./link.ts";

/** Posts a message to a mailbox. Its handler has begun, and goes on until `end` is called. */
export async function heldTurn(redlock: Redlock, name: string, id = "a") {
  const [begun, over] = [gate(), gate()];
  const handled: unknown[] = [];
  const posted = new Mailbox(redlock, name).post({ id, value: 1 }, async (messages) => {
    for await (const { value } of messages) {
      handled.push(value);
      begun.open();
      await over.passed;
    }
  });
  await begun.passed;
  return { posted, handled, end: () => over.open() };
}
