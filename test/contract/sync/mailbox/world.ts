import type { Redlock } from "../../../../src/index.ts";
import {
  Mailbox,
  type MailboxHandler,
  type MailboxOptions,
  type PostOptions,
} from "../../../../src/sync/index.ts";
import { type VirtualClient, watch } from "../../../support/virtual-client.ts";
import { newWorld as syncWorld } from "../../../support/virtual-sync.ts";

export const ttl = 1_000;

export const never: MailboxHandler<string> = () => new Promise(() => undefined);
export const nothing: MailboxHandler<string> = () => undefined;

/** Two clients of one mailbox, and more, in virtual time. The value of a message is its id. */
export function newWorld(count = 3) {
  const world = syncWorld({ count });
  const { runtime } = world;
  const pause = (ms: number) => runtime.sleep(ms);
  /** What was handled, in order, by all. */
  const handled: string[] = [];
  /** Takes so many ms for each message. */
  const slowly =
    (ms: number): MailboxHandler<string> =>
    async (messages) => {
      for await (const { value } of messages) {
        await pause(ms);
        handled.push(value);
      }
    };
  const mailbox = (redlock: Redlock, options: MailboxOptions<string> = {}) =>
    new Mailbox<string>(redlock, "m", { ttl, ...options });
  const post = (
    { redlock }: Pick<VirtualClient, "redlock">,
    text: string,
    handler: MailboxHandler<string> = slowly(0),
    { options, ...call }: PostOptions & { readonly options?: MailboxOptions<string> } = {},
  ) => mailbox(redlock, options).post({ id: text, value: text }, handler, call);
  /** From now on, requests of a client do not arrive, as those of a process that has ended. */
  const end = ({ links }: Pick<VirtualClient, "links">) => {
    for (const link of links) link.fate = () => "lost";
  };
  /** What a call returns within so many ms. */
  const within = async <Value>(ms: number, call: Promise<Value>) => {
    const watched = watch(call);
    await runtime.advance(ms);
    if (!watched.settled) throw new Error(`it takes more than ${ms} ms`);
    return call;
  };
  const [first, second] = [world.client(), world.client()];
  /** The first client takes the turn with the message `a`, and has held it for 10 ms. By default it takes 50 ms for each. */
  const hold = async (handler = slowly(50), given: Parameters<typeof post>[3] = {}) => {
    const holding = watch(post(first, "a", handler, given));
    await runtime.advance(10);
    return holding;
  };
  /** The second client posts these, one after another, each within a ms. */
  const leave = async (texts: readonly string[], given: Parameters<typeof post>[3] = {}) => {
    const posted = [];
    for (const text of texts) posted.push(await within(1, post(second, text, undefined, given)));
    return posted.map(({ status }) => status);
  };
  return { ...world, first, second, pause, handled, slowly, mailbox, post, hold, leave, end, within };
}
