// The value of a lock: its nonce and, behind a space, its note. Redis compares it whole, but the nonce alone identifies
// the holder and names its tombstone, because a note may be any text.

export interface Holder {
  readonly nonce: string;
  readonly note?: string | undefined;
}

export function holderText({ nonce, note }: Holder): string {
  return note === undefined ? nonce : `${nonce} ${note}`;
}

/** A value of another form is all nonce. */
export function parseHolder(text: string): Holder {
  const [, nonce = text, note] = /^(t[0-9a-f]{32}) (.+)$/s.exec(text) ?? [];
  return { nonce, note };
}
