// How the replies of scripts are read. An endpoint may return anything, so nothing is known of them.

/** The items of an array reply of this length; none where it is anything else. Default: of any length. */
export function itemsOf(reply: unknown, length?: number): readonly unknown[] {
  return Array.isArray(reply) && (length === undefined || reply.length === length) ? reply : [];
}

/** Whether it is an integer that a double holds exactly. */
export function isInteger(value: unknown): value is number {
  return Number.isSafeInteger(value);
}
