import { type Mutant, patch, twoAtOnce } from "./mutant.ts";

/** Defects of idempotent runs, with and without locks, and of their records. */
export const runMutants: readonly Mutant[] = [
  {
    name: "completes without comparing",
    breaks: "a late first handler overwrites the second one's result (Powertools, hono-idempotency)",
    patches: [
      patch(
        "redis/cell.lua",
        "== string.sub(value, from) then",
        '== string.sub(value, from) or found[i] and op == "extend" and string.find(ARGV[6], "^[CN]1 ") then',
      ),
    ],
    noticedBy: ["a stored result stands", "replays agree", ...twoAtOnce],
  },
  {
    name: "one expiry for lease and result",
    breaks: "a crash blocks the key for 24 hours (Powertools)",
    patches: [
      patch(
        "idempotency/claim.ts keyClaim",
        "acquireOrRead(call, own, lease)",
        "acquireOrRead(call, own, 86_400_000)",
      ),
    ],
    noticedBy: ["waiters are served", "calls end"],
  },
  {
    name: "result returned before it is decided",
    breaks: "a result that a minority has is replayed, while another run may still store a different one",
    patches: [patch("idempotency/run.ts #replay", "!state.decided &&", "!state &&")],
    noticedBy: ["replays agree", "a stored result stands"],
  },
  {
    name: "refused completion counts as stored",
    breaks: "the first handler's result counts as stored although the second one's is",
    patches: [
      patch(
        "idempotency/complete.ts completeOne",
        "return taken;",
        'return { ...taken, outcome: "granted" };',
      ),
    ],
    noticedBy: ["a stored result stands", "replays agree"],
  },
  {
    name: "too large a result is sent again and again",
    breaks: "it is never stored, and the effect is repeated after every lease",
    patches: [
      patch(
        "idempotency/complete.ts #noteSizeRefusals",
        "this.#sizeRefusals.set(endpoint, answer.cause);",
        "",
      ),
    ],
    noticedBy: ["requests are bounded", "waiters are served"],
  },
  {
    name: "single flights share keys with runs",
    breaks: "a flight that fails frees the record of a run, which then runs again",
    patches: [
      patch("idempotency/single-flight.ts #join", 'kind: "flight"', 'kind: "run"'),
      patch("idempotency/single-flight.ts #forget", 'kind: "flight"', 'kind: "run"'),
    ],
    noticedBy: ["a stored result stands", "replays agree"],
  },
  {
    name: "lock kept after complete",
    breaks: "the result is stored, and the entity stays locked until the lease ends",
    patches: [
      patch("redis/claim.lua", 'ARGV[9] == "1"', "false"),
      patch("redis/claim.lua", "found[i] == token", 'found[i] == token and ARGV[6] == ""'),
    ],
    noticedBy: ["each half by itself", "a run frees its lock"],
    theme: "locked-runs",
  },
  {
    name: "key claimed while the lock is refused",
    breaks: "a run that waits for the lock keeps its key from others, or for nobody",
    patches: [patch("redis/claim.lua", 'if #fresh > 0 then run("DEL", unpack(fresh)) end', "")],
    noticedBy: ["all or none", "nothing is abandoned"],
    theme: "locked-runs",
  },
  {
    name: "lock freed though it is another's",
    breaks: "a late end deletes the next holder's lock",
    patches: [
      patch("redis/claim.lua", 'ARGV[9] == "1"', "false"),
      patch("redis/claim.lua", "found[i] == token", "found[i]"),
    ],
    noticedBy: ["each half by itself", ...twoAtOnce],
    theme: "locked-runs",
  },
  {
    name: "fence of a minority",
    breaks: "the handler gets a fence that only a minority has seen, and the next holder a smaller one",
    patches: [patch("idempotency/claim.ts ClaimFence", "if (isAtQuorum)", "if (isAtQuorum || fence > 0)")],
    noticedBy: ["fences increase", "linearizable", "no lost update"],
    theme: "locked-runs",
  },
  {
    name: "late extension revives either half",
    breaks: "a renewal that is executed after the end leaves lock and record for nobody",
    patches: [
      patch("redis/claim.lua", "if found[i] ~= (", "if found[i] and found[i] ~= ("),
      patch(
        "redis/claim.lua",
        'KEYS[i], found[i], "PX", ttl',
        'KEYS[i], i == 1 and pending or token, "PX", ttl',
      ),
    ],
    noticedBy: ["all or none", "rolled back stays rolled back", ...twoAtOnce],
    theme: "locked-runs",
  },
];
