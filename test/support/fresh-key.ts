let count = 0;

/** An idempotency key that no other test of this process uses. */
export function freshKey(): string {
  count += 1;
  return `key-${count}`;
}
