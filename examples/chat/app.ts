// The webhook of a chat bot. It answers 202 as soon as the message is stored, and the holder of the thread's turn answers the
// messages in order. `worker.ts` runs it on Cloudflare, `server.ts` on Node.

import { Hono } from "hono";
import { timingSafeEqual } from "hono/utils/buffer";
import { endpointsFromEnv, Redlock, type RedlockEvent } from "redlock-edge";
import { Mailbox, type MailboxHandler } from "redlock-edge/sync";

export interface Bindings {
  readonly BOT_URL: string;
  readonly WEBHOOK_TOKEN: string;
  /** How long the platform lets an invocation run, in ms. Not set: without limit. */
  readonly LIFETIME_MS?: string;
  /** The databases. */
  readonly [name: string]: string | undefined;
}

/** What the chat sends. It repeats a delivery with its id until it gets 202. */
interface Delivery {
  readonly id: string;
  readonly thread: string;
  readonly text: string;
}

/** `signal`: the process ends, so no further message is begun. */
export function chat(signal?: AbortSignal): Hono<{ Bindings: Bindings }> {
  const app = new Hono<{ Bindings: Bindings }>();
  app.use(async (c, next) => {
    const isChat = await timingSafeEqual(
      c.req.header("authorization") ?? "",
      `Bearer ${c.env.WEBHOOK_TOKEN}`,
    );
    return isChat ? next() : c.body(null, 401);
  });
  app.onError((error, c) => {
    console.error(error);
    return c.body(null, 503); // the chat delivers it again
  });

  app.post("/webhook", async (c) => {
    const { id, thread, text } = await c.req.json<Delivery>();
    const mailbox = mailboxOf(thread, c.env, c.executionCtx);
    // It throws if the message may not be stored.
    await mailbox.post({ id, value: text }, answerBy(c.env.BOT_URL), callOf(c.env)).stored;
    return c.body(null, 202);
  });

  // For a cron job: a process may have died, and nobody posts any more.
  app.post("/threads/:thread/drain", async (c) => {
    const mailbox = mailboxOf(c.req.param("thread"), c.env, c.executionCtx);
    return c.json(await mailbox.drain(answerBy(c.env.BOT_URL), callOf(c.env)));
  });

  const callOf = ({ LIFETIME_MS }: Bindings) => ({
    signal,
    deadline: LIFETIME_MS === undefined ? undefined : Date.now() + Number(LIFETIME_MS),
  });
  return app;
}

type Background = { waitUntil(work: Promise<unknown>): void };

function mailboxOf(thread: string, env: Bindings, waitUntil: Background): Mailbox<string> {
  const onEvent = (event: RedlockEvent) => {
    if (event.type === "messageFailed") console.error(event.error);
  };
  const redlock = new Redlock({ endpoints: endpointsFromEnv(env), waitUntil, onEvent });
  return new Mailbox(redlock, `thread:${thread}`, {
    ttl: 30_000,
    maxAttempts: 5,
    onFailed: ({ id, error }) => console.error(`message ${id} is given up`, error),
  });
}

/** Lets the bot answer all messages, one after another. */
function answerBy(bot: string): MailboxHandler<string> {
  return async (messages, { signal, fence }) => {
    for await (const { id, value } of messages) {
      const answered = await fetch(`${bot}/answer`, {
        method: "POST",
        // After a crash this is sent again: the id shows that it is the same message, and a smaller fence that it is late.
        headers: { "idempotency-key": id, "x-fence": String(fence) },
        body: value,
        signal,
      });
      await answered.body?.cancel();
      if (!answered.ok) throw new Error(`message ${id}: the bot answered ${answered.status}`);
    }
  };
}
