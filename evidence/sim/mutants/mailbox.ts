import { type Mutant, patch } from "./mutant.ts";

/** Defects of mailboxes: of their rules at one endpoint, of what a quorum decides, and of the order. */
export const mailboxMutants: readonly Mutant[] = [
  {
    name: "a close does not look what waits",
    breaks: "the turn is let go although a message has arrived since the last look: nobody handles it",
    patches: patch(
      "twins/mailbox-twin.ts step",
      'closes === "1" && place.size() === present',
      'closes === "1" && present >= 0',
    ),
    noticedBy: ["a close leaves nothing behind"],
  },
  {
    name: "a minority queues a message",
    breaks: "a message is acknowledged that the holder may never see",
    patches: patch(
      "sync/internal/mailbox-protocol.ts next",
      "agreeing(stored, quorum)",
      "agreeing(stored, 1)",
    ),
    noticedBy: ["what is said of a message is true"],
  },
  {
    name: "only the holder says what is handled",
    breaks: "what it says too late is forgotten, and its message is handled again",
    patches: patch(
      "twins/mailbox-twin.ts step",
      "for (const [index, id] of rest.slice(0, done).entries())",
      "for (const [index, id] of (holder === token ? rest.slice(0, done) : []).entries())",
    ),
    noticedBy: ["a message is handled once"],
  },
  {
    name: "an old stamp is taken",
    breaks: "a client whose clock is behind comes before those who were there, and its fence falls",
    patches: patch("twins/mailbox-twin.ts post", "stamp <= last &&", "stamp < 0 &&"),
    noticedBy: ["messages keep their order", "fences increase"],
  },
  {
    name: "the next turn of a call moves its message",
    breaks: "a message that was acknowledged as stored comes after those that were posted later",
    patches: patch("sync/internal/mailbox-protocol.ts claim", "message.position ?? 0", "0"),
    noticedBy: ["messages keep their order"],
  },
  {
    name: "a stray is handled as it is",
    breaks: "a late repeated post reaches a minority after its message was handled",
    patches: patch(
      "sync/internal/mailbox-place.ts viewOf",
      "const isReady = ({ count }: { readonly count: number }) => count >= quorum;",
      "const isReady = ({ count }: { readonly count: number }) => count > 0;",
    ),
    noticedBy: ["a message is handled once"],
  },
  {
    name: "a mailbox ignores the tombstone",
    breaks: "a post that is executed after its undo takes a turn that nobody has",
    patches: patch("twins/mailbox-twin.ts post", "found[3] == null", "true"),
    noticedBy: ["rolled back stays rolled back"],
  },
  {
    name: "a mark is ignored",
    breaks: "a late post brings a message back that was handled",
    patches: patch(
      "twins/mailbox-twin.ts post",
      "id !== undefined && found[4] != null",
      "id !== undefined && found.length < 0",
    ),
    noticedBy: ["a message is handled once"],
  },
  {
    name: "a minority closes a turn",
    breaks: "the others have a message that the one which has closed does not know",
    patches: patch(
      "sync/internal/mailbox-turn.ts #step",
      'if (closes && result === "granted")',
      'if (closes && round.answers().some(({ state }) => state === "closed"))',
    ),
    noticedBy: ["a close leaves nothing behind"],
  },
  {
    name: "a late step undoes a later one",
    breaks: "a close that is executed late ends the turn while the holder goes on",
    patches: patch("twins/mailbox-twin.ts step", "whole(number) <= whole(at!)", "whole(number) < 0"),
    noticedBy: ["what is held stands", "one turn at a time", "a close leaves nothing behind"],
  },
  {
    name: "a refused close changes nothing",
    breaks: "the holder relies on an extension that an endpoint which has closed has forgotten",
    patches: [
      ...patch("sync/internal/mailbox-protocol.ts extend", "this.#mayHaveClosed.has(call.endpoint)", "false"),
      ...patch("sync/internal/mailbox-turn.ts #step", "closes && !(await this.#extends())", "false"),
    ],
    noticedBy: ["what is held stands"],
  },
  {
    name: "an order lives for longer than its values",
    breaks: "a message waits whose value has expired, so every handler fails at it",
    patches: patch("twins/mailbox-twin.ts expire", "if (ttl(order) === -1)", "if (ttl(order) > 0)"),
    noticedBy: ["every key expires"],
  },
];
