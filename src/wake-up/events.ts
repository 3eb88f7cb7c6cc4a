// https://upstash.com/docs/redis/features/restapi#subscribe--publish-commands

/** A release, for all waiters without a name. */
export const free = "free";

/** A waiter asks. `id`: its own random text. */
export const asks = (id: string): string => `ask:${id}`;

export const isAsking = (message: string): boolean => message.startsWith("ask:");

/** Longer than an encoded channel of 1 024 characters. */
const maxLine = 8_192;

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

export type ChannelEvent =
  | { readonly kind: "subscribed" }
  | { readonly kind: "message"; readonly message: string };

const pattern = /^data: ?(?:subscribe,[^,]*,.*|message,[^,]*,([\w:]{1,64}))$/;

/** Undefined: somebody else has published it. */
export function parseEvent(line: string): ChannelEvent | undefined {
  const match = pattern.exec(line);
  if (!match) return undefined;
  const [, message] = match;
  return message === undefined ? { kind: "subscribed" } : { kind: "message", message };
}
