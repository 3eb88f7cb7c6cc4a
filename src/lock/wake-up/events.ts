// Server-sent events, as Upstash streams the messages of a channel:
// https://upstash.com/docs/redis/features/restapi#subscribe--publish-commands

/** One event of a subscription. */
export type ChannelEvent =
  /** The subscription stands: every later message arrives. */
  | { readonly kind: "subscribed" }
  /**
   * Something became free. `waiters`: how many draw their turns, counted by streams where nobody is named; 0: each of those
   * of this name asks at once. `streams`: how many there are, where others are to look after whether it was taken.
   */
  | {
      readonly kind: "released";
      readonly waiters: number;
      readonly name: string | undefined;
      readonly streams: number | undefined;
    };

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

const pattern = /^data: ?(?:(subscribe),[^,]*,.*|message,[^,]*,(\d{1,7})(?::(\w{1,64})(?::(\d{1,7}))?)?)$/;

/** The event in a line; undefined where it is none that this package has published or asked for. */
export function parseEvent(line: string): ChannelEvent | undefined {
  const match = pattern.exec(line);
  if (!match) return undefined;
  const [, subscribe, text, name, streams] = match;
  if (subscribe) return { kind: "subscribed" };
  // Anybody who may publish could have sent anything. At worst it makes a waiter ask.
  const waiters = Number(text);
  return waiters > 0 || name
    ? { kind: "released", waiters, name, streams: streams ? Number(streams) : undefined }
    : undefined;
}
