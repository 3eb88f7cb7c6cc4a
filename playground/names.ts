/** When the worlds' wall clocks begin, in ms since 1970: so early that fences are short enough to read. */
export const epoch = 1_000;

/** The id of the event that is delivered twice. */
export const event = "evt_1";
