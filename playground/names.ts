/** When the worlds' wall clocks begin, in ms since 1970: so early that fences are short enough to read. */
export const epoch = 1_000;

/** The lane of what the locks protect. */
export const storageName = "the ledger";

/** The name of what all contend for. */
export const resource = "invoice-42";
