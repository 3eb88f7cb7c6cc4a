import type { permanentErrors } from "../../server-errors.ts";

// What to do about what servers say when they refuse a command. docs/errors.md prints this table.

/** Refusals that pass by themselves, so calls try again for as long as they may wait. */
export const passingErrors = [
  "LOADING",
  "READONLY",
  "BUSY",
  "OOM",
  "DB capacity quota exceeded",
  "MISCONF",
  "MASTERDOWN",
  "CLUSTERDOWN",
  "TRYAGAIN",
  "NOREPLICAS",
  "max number of clients reached",
  "max concurrent connections exceeded",
  "WRONGTYPE",
  "HTTP 429",
] as const;

type ServerError = (typeof permanentErrors)[number] | (typeof passingErrors)[number];

/** What to do about errors: one row of the table in docs/errors.md each. */
export interface Remedy {
  readonly errors: readonly ServerError[];
  readonly remedy: string;
}

export const remedies: readonly Remedy[] = [
  {
    errors: ["WRONGPASS", "NOAUTH", "Invalid token", "Unauthorized"],
    remedy: "Set the token of this database. Each database has its own token.",
  },
  {
    errors: ["NOPERM", "executing the script can't", "ACL failure in script"],
    remedy: "Give the user the rights that the feature needs. A read-only token cannot lock.",
  },
  {
    errors: ["unknown command", "Unknown Redis command", "Command is not available"],
    remedy: "Enable the command, or set the right dialect. The dialect redis needs EVAL and EVALSHA.",
  },
  {
    errors: ["shebang", "compiling script", "syntax error"],
    remedy: "Set the right dialect. The command doctor finds it out.",
  },
  {
    errors: ["CROSSSLOT"],
    remedy: "Give resources that are locked together the same hash tag.",
  },
  {
    errors: ["MOVED", "ASK"],
    remedy: "Use the Cluster client of ioredis or node-redis.",
  },
  {
    errors: ["max daily request limit exceeded", "max requests limit exceeded"],
    remedy: "Wait for the next day or month, or change the plan.",
  },
  {
    errors: ["max request size exceeded", "max key size exceeded", "max single record size exceeded"],
    remedy: "Store smaller results, or use shorter names.",
  },
  {
    errors: ["database is paused", "database is archived", "database is deleted"],
    remedy: "Restore the database, or set the address of another one.",
  },
  {
    errors: ["LOADING"],
    remedy: "The server reads its data after a restart. Nothing is to be done.",
  },
  {
    errors: ["READONLY"],
    remedy: "After a failover this ends by itself. Otherwise set the address of the primary.",
  },
  {
    errors: ["BUSY"],
    remedy: "Find the script that runs too long. It may belong to somebody else.",
  },
  {
    errors: ["OOM", "DB capacity quota exceeded"],
    remedy: "Free memory, or raise the limit.",
  },
  {
    errors: ["MISCONF"],
    remedy: "Look at the server's disk and log, because it cannot save its data.",
  },
  {
    errors: ["MASTERDOWN"],
    remedy: "Set the address of the primary, or wait until the replica reaches it.",
  },
  {
    errors: ["CLUSTERDOWN", "TRYAGAIN"],
    remedy: "Wait until the Cluster serves the slot again.",
  },
  {
    errors: ["NOREPLICAS"],
    remedy: "Start replicas, or lower min-replicas-to-write.",
  },
  {
    errors: ["max number of clients reached", "max concurrent connections exceeded"],
    remedy: "Open fewer connections, or raise the limit.",
  },
  {
    errors: ["WRONGTYPE"],
    remedy: "Another program has written a key such as redlock:lock:{name}. Rename or delete it.",
  },
  {
    errors: ["HTTP 429"],
    remedy: "Send less. Calls wait for as long as the header retry-after says.",
  },
];
