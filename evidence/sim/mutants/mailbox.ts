import { type Mutant, patch } from "./mutant.ts";

/** Defects of mailboxes: of their rules at one endpoint, of what a quorum decides, and of the order. */
export const mailboxMutants: readonly Mutant[] = [
  {
    name: "a close does not look what waits",
    breaks: "the turn is let go although a message has arrived since the last look: nobody handles it",
    patches: [
      patch(
        "twins/mailbox-twin.ts step",
        'closes === "1" && place.size() === present',
        'closes === "1" && present >= 0',
      ),
    ],
    noticedBy: ["a close leaves nothing behind"],
  },
  {
    name: "a minority queues a message",
    breaks: "a message is acknowledged that the holder may never see",
    patches: [
      patch("sync/internal/mailbox-protocol.ts next", "agreeing(stored, quorum)", "agreeing(stored, 1)"),
    ],
    noticedBy: ["what is said of a message is true"],
  },
  {
    name: "a repeated post takes the turn",
    breaks: "it was told that another has the turn, so nobody gives back what its second execution has taken",
    patches: [
      patch(
        "twins/mailbox-twin.ts post",
        "known != null && attempt === token",
        "known != null && attempt === null",
      ),
    ],
    noticedBy: ["nothing is abandoned"],
  },
  {
    name: "only the holder says what is handled",
    breaks: "what it says too late is forgotten, and its message is handled again",
    patches: [
      patch(
        "twins/mailbox-twin.ts step",
        "for (const [index, id] of rest.slice(0, done).entries())",
        "for (const [index, id] of (holder === token ? rest.slice(0, done) : []).entries())",
      ),
    ],
    noticedBy: ["a message is handled once"],
  },
  {
    name: "an old stamp is taken",
    breaks: "a client whose clock is behind comes before those who were there, and its fence falls",
    patches: [patch("twins/mailbox-twin.ts post", "stamp <= last &&", "stamp < 0 &&")],
    noticedBy: ["messages keep their order", "fences increase"],
  },
  {
    name: "a stray is handled as it is",
    breaks: "a late repeated post reaches a minority after its message was handled",
    patches: [
      patch(
        "sync/internal/mailbox-place.ts viewOf",
        "const isReady = ({ count }: { readonly count: number }) => count >= quorum;",
        "const isReady = ({ count }: { readonly count: number }) => count > 0;",
      ),
    ],
    noticedBy: ["a message is handled once"],
  },
  {
    name: "a mailbox ignores the tombstone",
    breaks: "a post that is executed after its undo takes a turn that nobody has",
    patches: [patch("twins/mailbox-twin.ts post", "found[3] == null &&", "")],
    noticedBy: ["rolled back stays rolled back"],
  },
  {
    name: "a mark is ignored",
    breaks: "a late post brings a message back that was handled",
    patches: [
      patch(
        "twins/mailbox-twin.ts post",
        "id !== undefined && found[4] != null",
        "id !== undefined && found.length < 0",
      ),
    ],
    noticedBy: ["a message is handled once"],
  },
];
