import type { Lock } from "../src/index.ts";
import { Mailbox } from "../src/sync/index.ts";
import type { Chat } from "./chat.ts";
import type { Client } from "./client.ts";
import { Handler } from "./handler.ts";
import { Link } from "./link.ts";
import { listKey, thread } from "./names.ts";
import type { World } from "./world.ts";

/** A process that gets messages of a conversation, which must be answered one after another. */
export function poster(
  client: Client,
  { world, chat, isGuarded }: { readonly world: World; readonly chat: Chat; readonly isGuarded: boolean },
): Handler {
  return new Handler(client, {
    label: "Post a message",
    key: thread,
    next: () => chat.newMessage(),
    handle: isGuarded ? toMailbox(client, chat) : byHand(client, world, chat),
  });
}

function toMailbox(client: Client, chat: Chat): (message: string) => Promise<string> {
  const mailbox = new Mailbox<string>(client.redlock(), thread);
  return async (message) => {
    client.doing = "post";
    // The picture tells by the id who has posted it.
    const { status } = await mailbox.post(
      { id: `${message}/${client.name}`, value: message },
      async (messages) => {
        for await (const { value } of messages) await chat.answer(client, value);
      },
    );
    return status;
  };
}

/** With a lock, and a list of what arrives while another process has it. */
function byHand(client: Client, world: World, chat: Chat): (message: string) => Promise<string> {
  const redlock = client.redlock();
  const list = new Link(client, world.endpoints[0]!);
  const ask = (doing: string, command: (string | number)[]) => {
    client.doing = doing;
    return list.send(command, new AbortController().signal);
  };
  const look = async () => ((await ask("look", ["ZRANGE", listKey, 0, 0])) as string[])[0];
  return async (message) => {
    client.doing = "acquire";
    const lock: Lock | undefined = await redlock.acquire(thread, { wait: 0 }).catch(() => undefined);
    if (!lock) {
      await ask("add", ["ZADD", listKey, "GT", Math.ceil(world.time.elapsed), `${message}/${client.name}`]);
      return "listed";
    }
    await chat.answer(client, message);
    for (let next = await look(); next !== undefined; next = await look()) {
      await chat.answer(client, next.split("/")[0]!);
      await ask("remove", ["ZREM", listKey, next]);
    }
    client.doing = "release";
    await lock.release();
    return "handled";
  };
}
