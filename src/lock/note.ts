// What stands at the key of a lock: its nonce, and behind a space its note, if it has one. Values are compared whole. The
// nonce alone identifies the holder and names its tombstone, because a note may be any text.

/** A holder: its nonce and its note. */
export interface Holder {
  readonly nonce: string;
  readonly note?: string | undefined;
}

/** The value of a holder. */
export function holderText({ nonce, note }: Holder): string {
  return note === undefined ? nonce : `${nonce} ${note}`;
}

/** The holder of a value. One of another form is a nonce as a whole. */
export function parseHolder(text: string): Holder {
  const [, nonce = text, note] = /^(t[0-9a-f]{32}) (.+)$/s.exec(text) ?? [];
  return { nonce, note };
}
