// Server-sent events, as Upstash streams the messages of a channel:
// https://upstash.com/docs/redis/features/restapi#subscribe--publish-commands

/** The message of a release, for all that wait without a name. */
export const free = "free";

/** The message of a waiter that asks. `id`: a random text of its own. */
export const asks = (id: string): string => `ask:${id}`;

/** Whether a message says that a waiter asks. */
export const isAsking = (message: string): boolean => message.startsWith("ask:");

/** The longest line that is kept, in characters: a channel of 1 024 characters, encoded, and more. */
const maxLine = 8_192;

/**
 * Splits a stream's text into lines. Text comes in pieces of any length.
 *
 * @throws RangeError when a line exceeds 8 192 characters
 */
export function lineSplitter(): (text: string) => string[] {
  let rest = "";
  return (text) => {
    const lines = (rest + text).split(/\r?\n/);
    rest = lines.pop()!;
    if ([rest, ...lines].some(({ length }) => length > maxLine)) {
      throw new RangeError(`a line exceeds ${maxLine} characters`);
    }
    return lines;
  };
}

/** One event of a subscription: it stands, so that every later message arrives, or a message. */
export type ChannelEvent =
  | { readonly kind: "subscribed" }
  | { readonly kind: "message"; readonly message: string };

const pattern = /^data: ?(?:subscribe,[^,]*,.*|message,[^,]*,([\w:]{1,64}))$/;

/** The event in a line. Undefined: anybody may publish, and this package has not published this. */
export function parseEvent(line: string): ChannelEvent | undefined {
  const match = pattern.exec(line);
  if (!match) return undefined;
  const [, message] = match;
  return message === undefined ? { kind: "subscribed" } : { kind: "message", message };
}
