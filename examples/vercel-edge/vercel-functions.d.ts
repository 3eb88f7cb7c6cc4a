/** Declares the part of `@vercel/functions` that is used here. Delete it if the package is installed. */
declare module "@vercel/functions" {
  /** Keeps the function alive until the promise settles, within the function's own time limit. */
  export function waitUntil(promise: Promise<unknown>): void;
}
