// What fails on a local endpoint and is known, with the reason. Everything else that fails, fails `node evidence/compat.mjs`. All of
// it is of the own tests of @upstash/redis (`--suite`): no case of this folder is known to fail.

const both = ["redis", "embedded"];

/** @type {readonly (readonly [reason: string, engines: readonly string[], error: RegExp, name?: RegExp])[]} */
const known = [
  [
    "Redis 7.0 does not have it: fields of a hash expire from 7.4 on, HGETDEL, HGETEX and HSETEX came with 8.0",
    ["redis"],
    /unknown command '(hp?expire(at|time)?|hp?ttl|hpersist|hget(del|ex)|hsetex)'/i,
  ],
  [
    "Redis 7.0 does not have it: XDELEX and XACKDEL came with 8.2",
    ["redis"],
    /unknown command '(XDELEX|XACKDEL)'/i,
  ],
  [
    "Redis 7.0 does not have it: DIFF, DIFF1, ANDOR and ONE came with 8.2",
    ["redis"],
    /syntax error/,
    /^commands\/bitop/,
  ],
  ["a module of Redis: JSON", both, /unknown command 'JSON\.\w+'/],
  ["Upstash's own: SEARCH", both, /unknown command 'SEARCH\.\w+'/],
  [
    "Redis refuses FCALL_RO of a function without the flag no-writes; Upstash calls it, and refuses its writes",
    ["redis"],
    /Can not execute a script with wri/,
    /FCALL_RO/,
  ],
  [
    "XTRIM with ~ may leave a block of 100 entries in Redis; the test expects fewer",
    ["redis"],
    /less than or equal to 31/,
    /approximately trim/,
  ],
  [
    "XREADGROUP with NOACK makes the consumer known in Redis, and not at Upstash",
    both,
    /to deeply equal \[\]/,
    /^commands\/xreadgroup.test.ts: NOACK/,
  ],
  [
    "the test waits one tick for a SHA-1, which Node computes in another thread",
    both,
    /expected '' to deeply equal/,
    /^script.test.ts: sha1/,
  ],
  [
    "the test expects the words of an error of Bun",
    both,
    /Failed to parse URL|aborted due to time/,
    /^http.test.ts/,
  ],
];

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
