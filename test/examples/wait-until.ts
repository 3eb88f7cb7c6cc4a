// Replaces the platforms' modules in the tests: `@vercel/functions` and `next/server`.

declare const platformWork: Promise<unknown>[];

export function waitUntil(work: Promise<unknown>): void {
  // As on the platforms: only a promise can be awaited.
  if (typeof work?.then !== "function") throw new TypeError("waitUntil needs a promise");
  platformWork.push(work);
}

export const after: typeof waitUntil = waitUntil;
