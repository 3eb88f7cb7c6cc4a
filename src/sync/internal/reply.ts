// Replies of scripts. An endpoint may return anything.

export function itemsOf(reply: unknown): readonly unknown[] {
  return Array.isArray(reply) ? reply : [];
}

export function isInteger(value: unknown): value is number {
  return Number.isSafeInteger(value);
}
