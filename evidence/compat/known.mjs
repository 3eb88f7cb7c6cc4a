// What fails on a local endpoint and is known, with the reason. Everything else that fails, fails `node evidence/compat.mjs`. All of
// it is of the own tests of @upstash/redis (`--suite`): no case of this folder is known to fail.

/** @type {readonly (readonly [reason: string, error: RegExp, name?: RegExp])[]} */
const known = [
  [
    "Redis 7.0 does not have it: fields of a hash expire from 7.4 on, HGETDEL, HGETEX and HSETEX came with 8.0",
    /unknown command '(hp?expire(at|time)?|hp?ttl|hpersist|hget(del|ex)|hsetex)'/i,
  ],
  ["Redis 7.0 does not have it: XDELEX and XACKDEL came with 8.2", /unknown command '(XDELEX|XACKDEL)'/i],
  [
    "Redis 7.0 does not have it: DIFF, DIFF1, ANDOR and ONE came with 8.2",
    /syntax error/,
    /^commands\/bitop/,
  ],
  ["a module of Redis: JSON", /unknown command 'JSON\.\w+'/],
  ["Upstash's own: SEARCH", /unknown command 'SEARCH\.\w+'/],
  [
    "Redis refuses FCALL_RO of a function without the flag no-writes; Upstash calls it, and refuses its writes",
    /Can not execute a script with wri/,
    /FCALL_RO/,
  ],
  [
    "XTRIM with ~ may leave a block of 100 entries in Redis; the test expects fewer",
    /less than or equal to 31/,
    /approximately trim/,
  ],
  [
    "XREADGROUP with NOACK makes the consumer known in Redis, and not at Upstash",
    /to deeply equal \[\]/,
    /^commands\/xreadgroup.test.ts: NOACK/,
  ],
  [
    "the test waits one tick for a SHA-1, which Node computes in another thread",
    /expected '' to deeply equal/,
    /^script.test.ts: sha1/,
  ],
  [
    "the test expects the words of an error of Bun",
    /Failed to parse URL|aborted due to time/,
    /^http.test.ts/,
  ],
];

/**
 * Why a case is known to fail; undefined if it is not.
 *
 * @param {{ name: string, error?: string }} result
 */
export function reasonFor({ name, error = "" }) {
  return known.find(([, message, names = /^/]) => message.test(error) && names.test(name))?.[0];
}
