// What the programs of this folder share. A program exports `cases`: what one package of Upstash promises in its README,
// each case with keys of its own, so that all of them can run at the same time.
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

export { default as assert } from "node:assert/strict";
export { sleep };

/** A name that no other case uses. */
export function fresh() {
  return randomUUID();
}

/**
 * Waits until a condition holds, and returns what it returned. Rejects after `ms`, default 10 000.
 *
 * @template Value
 * @param {() => Promise<Value> | Value} condition
 * @param {string} what for the error
 * @returns {Promise<Value>}
 */
export async function until(condition, what, ms = 10_000) {
  const end = Date.now() + ms;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > end) throw new Error(`waited ${ms} ms for ${what}`);
    await sleep(20);
  }
}
