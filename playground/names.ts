/** When the worlds' wall clocks begin, in ms since 1970: so early that fences are short enough to read. */
export const epoch = 1_000;

/** The id of the event that is delivered twice. */
export const event = "evt_1";

/** The conversation whose messages are answered one after another. */
export const thread = "thread:7";

/** The key of its list of messages, if that is kept by hand: a sorted set, because the endpoints have no lists. */
export const listKey: string = `${thread}:list`;
