// How the replies of scripts are read. An endpoint may return anything, so nothing is known of them.

/** The items of an array reply; none where it is anything else, or longer than `most`. Default: of any length. */
export function itemsOf(reply: unknown, most: number = Infinity): readonly unknown[] {
  // Stryker disable next-line ArrayDeclaration: what it would contain is no reply of a script either
  return Array.isArray(reply) && reply.length <= most ? reply : [];
}

/** Whether it is an integer that a double holds exactly. */
export function isInteger(value: unknown): value is number {
  return Number.isSafeInteger(value);
}
