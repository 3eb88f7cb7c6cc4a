/** Declares the part of `next/server` (Next.js 15.1 and later) that is used here. Delete it in a Next.js project. */
declare module "next/server" {
  /** Runs a function after the response was sent, or keeps the platform alive until a promise settles. */
  export function after<Value>(task: Promise<Value> | (() => Value | Promise<Value>)): void;
}
