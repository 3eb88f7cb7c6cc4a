// Stands in the tests for the platforms' modules: `@vercel/functions`, `next/server`.

declare const platformWork: Promise<unknown>[];

export function waitUntil(work: Promise<unknown>): void {
  // As the platforms do: what is no promise could not be waited for.
  if (typeof work?.then !== "function") throw new TypeError("waitUntil needs a promise");
  platformWork.push(work);
}

export const after: typeof waitUntil = waitUntil;
