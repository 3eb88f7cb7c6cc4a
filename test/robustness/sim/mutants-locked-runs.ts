import { type Mutant, type Patch, twoAtOnce } from "./mutant.ts";

const script = "redis/claim-script.ts";

/** The script compares and sets by itself, also where the endpoint has commands for that: one place to break. */
const withoutNative: Patch = { file: script, find: 'if ARGV[9] == "1" then', replace: "if false then" };

/** Defects of runs that lock resources. */
export const lockedRunMutants: readonly Mutant[] = [
  {
    name: "lock kept after complete",
    breaks: "the result is stored, and the entity stays locked until the lease ends",
    patches: [
      withoutNative,
      {
        file: script,
        find: "if found[i] == token then",
        replace: 'if found[i] == token and ARGV[6] == "" then',
      },
    ],
    noticedBy: ["each half by itself", "a run frees its lock"],
    theme: "locked-runs",
  },
  {
    name: "key claimed while the lock is refused",
    breaks: "a run that waits for the lock keeps its key from others, or for nobody",
    patches: [{ file: script, find: 'if #fresh > 0 then run("DEL", unpack(fresh)) end', replace: "" }],
    noticedBy: ["all or none", "nothing is abandoned"],
    theme: "locked-runs",
  },
  {
    name: "result lost with the lock",
    breaks: "where an operator freed the lock, the result is not stored, and the effect is repeated",
    patches: [
      withoutNative,
      {
        file: script,
        find: "if found[1] == pending then",
        replace: "if found[1] == pending and #gone == n then",
      },
    ],
    noticedBy: ["each half by itself", "a stored result stands", "replays agree"],
    theme: "locked-runs",
  },
  {
    name: "lock kept where the record is lost",
    breaks: "another run took over the key, and the entity stays locked until the lease ends",
    patches: [
      withoutNative,
      {
        file: script,
        find: "if found[i] == token then",
        replace: "if found[i] == token and found[1] == pending then",
      },
    ],
    noticedBy: ["each half by itself", "nothing is abandoned"],
    theme: "locked-runs",
  },
  {
    name: "lock freed though it is another's",
    breaks: "a late end deletes the next holder's lock",
    patches: [
      withoutNative,
      { file: script, find: "if found[i] == token then", replace: "if found[i] then" },
    ],
    noticedBy: ["each half by itself", ...twoAtOnce],
    theme: "locked-runs",
  },
  {
    name: "native end deletes any lock",
    breaks: "the same, where the endpoint has commands that compare",
    patches: [
      {
        file: script,
        find: 'for i = 2, n + 1 do run("DELEX", KEYS[i], "IFEQ", token) end',
        replace: 'for i = 2, n + 1 do run("DEL", KEYS[i]) end',
      },
    ],
    noticedBy: ["each half by itself", ...twoAtOnce],
    theme: "locked-runs",
  },
  {
    name: "fence of a minority",
    breaks: "the handler gets a fence that only a minority has seen, and the next holder a smaller one",
    patches: [
      {
        file: "idempotency/claim.ts",
        find: "if (isAtQuorum) return undefined;",
        replace: "if (isAtQuorum || fence > 0) return undefined;",
      },
    ],
    noticedBy: ["fences increase", "linearizable", "no lost update"],
    theme: "locked-runs",
  },
  {
    name: "run draws the last holder's fence",
    breaks: "a holder that was paused writes beside the run",
    patches: [
      {
        file: script,
        find: "highest = math.max(highest, drawn + 1)",
        replace: "highest = math.max(highest, drawn)",
      },
    ],
    noticedBy: ["fences increase", "linearizable", "no lost update"],
    theme: "locked-runs",
  },
  {
    name: "late extension revives either half",
    breaks: "a renewal that is executed after the end leaves lock and record for nobody",
    patches: [
      {
        file: script,
        find: "if found[i] ~= (i == 1 and pending or token) then",
        replace: "if found[i] and found[i] ~= (i == 1 and pending or token) then",
      },
      {
        file: script,
        find: 'run("SET", KEYS[i], found[i], "PX", ttl)',
        replace: 'run("SET", KEYS[i], i == 1 and pending or token, "PX", ttl)',
      },
    ],
    noticedBy: ["all or none", "rolled back stays rolled back", ...twoAtOnce],
    theme: "locked-runs",
  },
  {
    name: "renewal leaves the locks",
    breaks: "the record is renewed and the lock expires under the handler",
    patches: [{ file: script, find: 'ttl == "0" and 0 or n + 1 do', replace: 'ttl == "0" and 0 or 1 do' }],
    noticedBy: twoAtOnce,
    theme: "locked-runs",
  },
  {
    name: "begin ignores a held lock",
    breaks: "the run goes on beside the holder of the lock",
    patches: [
      {
        file: script,
        find: "if other and other ~= own then",
        replace: "if i == 1 and other and other ~= own then",
      },
    ],
    noticedBy: ["all or none", ...twoAtOnce],
    theme: "locked-runs",
  },
  {
    name: "failed run keeps its locks",
    breaks: "the key is free for a retry, which waits for the lock until the lease ends",
    patches: [
      {
        file: "idempotency/claim.ts",
        find: "free: (call) => endClaim(call, keys),",
        replace: "free: (call) => release(call, own),",
      },
    ],
    noticedBy: ["nothing is abandoned", "waiters are served"],
    theme: "locked-runs",
  },
];
