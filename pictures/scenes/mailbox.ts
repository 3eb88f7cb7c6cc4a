import { Mailbox } from "../../src/sync/index.ts";
import type { Client } from "../world/client.ts";
import { Link, redlockIn } from "../world/link.ts";
import { listKey } from "../world/stored.ts";
import type { Act, Scene } from "./scene.ts";

/** The conversation, whose messages are answered one after another. */
const thread = "thread:7";

/** A message that arrives during the release. */
export const mailbox: Scene = {
  name: "mailbox",
  title: "A message arrives during the release of the turn.",
  clients: ["Ann", "Bob"],
  storage: "the chat",
  isPlain: true,
  acts: [
    { title: "A lock and a list", endpoints: 1, play: postTwo(byHand) },
    { title: "A Mailbox", endpoints: 1, play: postTwo(toMailbox) },
  ],
};

type Answer = (message: string) => Promise<void>;

/** What a client does with a message. @returns what has become of it, in a word */
type Handle = (message: string) => Promise<string>;

/** With a lock, and a list of the messages that arrive while another process has it. */
function byHand(client: Client, answer: Answer): Handle {
  const redlock = redlockIn(client);
  const { endpoints, time } = client.world;
  const list = new Link(client, endpoints[0]!);
  const look = async () => ((await list.request(["ZRANGE", listKey, 0, 0], "look")) as string[])[0];
  return async (message) => {
    const lock = await redlock.acquire(thread, { wait: 0 }).catch(() => undefined);
    if (!lock) {
      const score = Math.ceil(time.elapsed);
      await list.request(["ZADD", listKey, "GT", score, `${message}/${client.name}`], "add");
      return "listed";
    }
    await answer(message);
    for (let next = await look(); next !== undefined; next = await look()) {
      await answer(next.split("/")[0]!);
      await list.request(["ZREM", listKey, next], "remove");
    }
    await lock.release();
    return "handled";
  };
}

function toMailbox(client: Client, answer: Answer): Handle {
  const box = new Mailbox<string>(redlockIn(client), thread);
  return async (message) => {
    // The picture tells by the id who has posted it.
    const posted = { id: `${message}/${client.name}`, value: message };
    const { status } = await box.post(posted, async (messages) => {
      for await (const { value } of messages) await answer(value);
    });
    return status;
  };
}

function postTwo(handleOf: (client: Client, answer: Answer) => Handle): Act["play"] {
  return async (world, clients) => {
    const { time, distances, endpoints, storage } = world;
    const answered = new Set<string>();
    const [post, postLater] = clients.map((client, index) => {
      const message = `message ${index + 1}`;
      const answer = (which: string) =>
        client.write(`answer ${which}`, () => {
          answered.add(which);
          return undefined;
        });
      const handle = handleOf(client, answer);
      return () => client.call(message, thread, () => handle(message));
    });
    for (const { name } of clients) {
      distances.set(`${name}>${storage}`, 70);
      for (const endpoint of endpoints) distances.set(`${name}>${endpoint.name}`, 40);
    }
    const handled = post!();
    await time.sleep(195);
    await Promise.all([handled, postLater!()]);
    if (answered.has("message 2")) return world.judge("upheld", "MESSAGE 2 IS ANSWERED");
    await time.sleep(100);
    world.judge("violated", "MESSAGE 2 IS STUCK");
  };
}
