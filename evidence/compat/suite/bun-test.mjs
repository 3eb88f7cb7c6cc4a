// Bun's test functions by Vitest's: the tests of @upstash/redis run in Bun.
import { expect as expectValue, test as vitestTest } from "vitest";

export { afterAll, afterEach, beforeAll, beforeEach, describe, vi } from "vitest";

expectValue.extend({
  toBeTrue: (value) => ({ pass: value === true, message: () => `expected ${value} to be true` }),
  toBeFalse: (value) => ({ pass: value === false, message: () => `expected ${value} to be false` }),
  toStartWith: (value, start) => ({
    pass: String(value).startsWith(start),
    message: () => `expected ${value} to start with ${start}`,
  }),
});

let pending = [];

/** Like Bun's, `toThrow` also expects a promise to be rejected that the function returns; the test waits for it. */
function toThrow(run, ...expected) {
  let returned;
  try {
    returned = run();
  } catch (error) {
    return expectValue(() => {
      throw error;
    }).toThrow(...expected);
  }
  if (typeof returned?.then !== "function") return expectValue(() => returned).toThrow(...expected);
  const rejected = expectValue(returned).rejects.toThrow(...expected);
  pending.push(rejected);
  // Awaited at the end of the test.
  rejected.catch(() => undefined);
  return rejected;
}

export const expect = Object.assign((value, ...rest) => {
  const matchers = expectValue(value, ...rest);
  if (typeof value !== "function") return matchers;
  return new Proxy(matchers, {
    get: (target, name) => (name === "toThrow" ? (...expected) => toThrow(value, ...expected) : target[name]),
  });
}, expectValue);

function likeBun(declare) {
  return (name, run, options) => {
    const timeout = typeof options === "object" ? options.timeout : options;
    const waiting = async (...args) => {
      pending = [];
      await run(...args);
      await Promise.all(pending);
    };
    return declare(name, timeout === undefined ? {} : { timeout }, run && waiting);
  };
}

export const test = Object.assign(likeBun(vitestTest), {
  skip: likeBun(vitestTest.skip),
  only: likeBun(vitestTest.only),
  todo: vitestTest.todo,
  each: vitestTest.each,
  if: (condition) => likeBun(condition ? vitestTest : vitestTest.skip),
  skipIf: (condition) => likeBun(condition ? vitestTest.skip : vitestTest),
});
export const it = test;
