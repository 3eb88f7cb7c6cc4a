// Replaces `next/server` in the tests.

declare const platformWork: Promise<unknown>[];

export function after(work: Promise<unknown>): void {
  // As on the platform: only a promise can be awaited.
  if (typeof work?.then !== "function") throw new TypeError("after needs a promise");
  platformWork.push(work);
}
