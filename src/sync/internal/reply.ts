// How the replies of scripts are read. An endpoint may return anything, so nothing is known of them.

/** The items of an array reply, or none if it is anything else. */
export function itemsOf(reply: unknown): readonly unknown[] {
  return Array.isArray(reply) ? reply : [];
}

/** Whether it is an integer that a double holds exactly. */
export function isInteger(value: unknown): value is number {
  return Number.isSafeInteger(value);
}
