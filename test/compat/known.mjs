// What fails on a local endpoint and is known, with the reason. Everything else that fails, fails `npm run compat`.

const redis74 = "Redis 7.0 does not have it: expiry of the fields of a hash came with 7.4 and 8.0";
const redis82 = "Redis 7.0 does not have it: it came with 8.2";

/** @type {readonly (readonly [reason: string, engines: readonly string[], error: RegExp, name?: RegExp])[]} */
const known = [];

/**
 * Why a case is known to fail on an engine; undefined if it is not.
 *
 * @param {string} engine `redis` or `embedded`
 * @param {{ name: string, error?: string }} result
 */
export function reasonFor(engine, { name, error = "" }) {
  return known.find(
    ([, engines, message, names = /^/]) =>
      engines.includes(engine) && message.test(error) && names.test(name),
  )?.[0];
}
