import { Chat } from "../chat.ts";
import type { Handler } from "../handler.ts";
import { poster } from "../poster.ts";
import type { Scene } from "./scene.ts";

const storage = "the chat";

/** A message that arrives during the release. */
export const mailbox: Scene = {
  id: "mailbox",
  name: "One turn at a time",
  shows: "A message arrives during the release of the turn.",
  endpoints: 1,
  clients: ["Ann", "Bob"],
  storage,
  acts: [
    { name: "A lock and a list", isGuarded: false },
    { name: "A Mailbox", isGuarded: true },
  ],
  speed: 0.06,
  captions: [
    {
      at: { phase: "executed", client: "Ann", operation: "acquire" },
      says: () => "Ann's process gets message 1, and the lock of the conversation.",
    },
    {
      at: { phase: "executed", client: "Ann", operation: "post" },
      says: () => "Ann's process gets message 1, and the turn of the conversation.",
    },
    {
      at: { phase: "executed", client: "Ann", endpoint: storage },
      says: () => "Ann answers message 1.",
    },
    {
      at: { phase: "executed", client: "Bob", operation: "acquire" },
      says: () => "Bob's process gets message 2, and is refused the lock: so it puts the message on a list.",
    },
    {
      at: { phase: "executed", client: "Ann", operation: "look" },
      says: () =>
        "Ann looks at the list for the last time. It is empty, so she is going to release the lock.",
    },
    {
      at: { phase: "executed", client: "Bob", operation: "add" },
      says: () => "Only now message 2 is on the list.",
    },
    {
      at: { phase: "executed", client: "Ann", operation: "release" },
      says: () => "Ann's release arrives. Message 2 has come between her last look and her release.",
    },
    {
      at: { phase: "violated" },
      says: () => "Nobody looks at the list: message 2 waits until somebody happens to write again.",
    },
    {
      at: { phase: "executed", client: "Bob", operation: "post", outcome: "held" },
      says: () =>
        "Ann's last look and release, one step, are on their way when message 2 arrives. Bob finds the turn taken, and leaves the message in it.",
    },
    {
      at: { phase: "executed", client: "Ann", operation: "close", outcome: "held" },
      says: () => "Ann's step finds message 2, so her turn doesn't end.",
    },
    {
      at: { phase: "executed", client: "Ann", endpoint: storage },
      says: () => "Ann answers message 2 in the same turn.",
    },
    {
      at: { phase: "executed", client: "Ann", operation: "close", outcome: "granted" },
      says: () => "Nothing waits any more, and the same step ends the turn.",
    },
  ],
  begin(world, { isGuarded }) {
    const chat = new Chat(world);
    const actors = world.clients.map((client) => poster(client, { world, chat, isGuarded }));
    const [ann, bob] = actors as [Handler, Handler];
    return {
      actors,
      lines: () => chat.answered,
      async play() {
        for (const { name } of world.clients) {
          world.distances.set(`${name}>${storage}`, 70);
          for (const endpoint of world.endpoints) world.distances.set(`${name}>${endpoint.name}`, 40);
        }
        const handled = ann.receive();
        await world.time.sleep(195);
        await Promise.all([handled, bob.receive()]);
        if (chat.answered.length < 2) await world.time.sleep(100);
        chat.close("message 2");
      },
      outcome: () =>
        chat.answered.includes("message 2")
          ? "Both messages are answered, in one turn."
          : "Message 2 is stuck: it came between the last look at the list and the release.",
    };
  },
};
