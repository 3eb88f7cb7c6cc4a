/** Stands for the part of the package `@vercel/functions` that is used here; delete it where that is installed. */
declare module "@vercel/functions" {
  /** Keeps the function alive until the promise settles, within the function's own time limit. */
  export function waitUntil(promise: Promise<unknown>): void;
}
