// How the replies of scripts are read. An endpoint may return anything, so nothing is known of them.

/** The items of an array reply; none where it is anything else. */
export function itemsOf(reply: unknown): readonly unknown[] {
  // Stryker disable next-line ArrayDeclaration: what it would contain is no reply of a script either
  return Array.isArray(reply) ? reply : [];
}

/** Whether it is an integer that a double holds exactly. */
export function isInteger(value: unknown): value is number {
  return Number.isSafeInteger(value);
}
