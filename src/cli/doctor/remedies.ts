import type { Failure } from "../access.ts";

/** `error`: the endpoint does not work. `warning`: it works, but not well. */
export type Level = "error" | "warning";

/** Something that doctor has to say. */
export interface Advice {
  readonly level: Level;
  readonly code: string;
  readonly message: string;
  readonly fix: string;
}

// What to do about each failure of an endpoint.

/** By what servers say when they refuse a command: what to do. docs/errors.md prints this table. */
export const serverRemedies: Readonly<Record<string, string>> = {
  "WRONGPASS, NOAUTH, Invalid token, Unauthorized":
    "Set the token of this database. Each database has its own token.",
  "NOPERM, executing the script can't, ACL failure in script":
    "Give the user the rights that the feature needs. A read-only token cannot lock.",
  "unknown command, Unknown Redis command, Command is not available":
    "Enable the command, or set the right dialect. The dialect redis needs EVAL and EVALSHA.",
  "shebang, compiling script, syntax error": "Set the right dialect. The command doctor finds it out.",
  CROSSSLOT: "Give resources that are locked together the same hash tag.",
  "MOVED, ASK": "Use the Cluster client of ioredis or node-redis.",
  "max daily request limit exceeded, max requests limit exceeded":
    "Wait for the next day or month, or change the plan.",
  "max request size exceeded, max key size exceeded, max single record size exceeded":
    "Store smaller results, or use shorter names.",
  "database is paused, database is archived, database is deleted":
    "Restore the database, or set the address of another one.",
  LOADING: "The server reads its data after a restart. Nothing is to be done.",
  READONLY: "After a failover this ends by itself. Otherwise set the address of the primary.",
  BUSY: "Find the script that runs too long. It may belong to somebody else.",
  "OOM, DB capacity quota exceeded": "Free memory, or raise the limit.",
  MISCONF: "Look at the server's disk and log, because it cannot save its data.",
  MASTERDOWN: "Set the address of the primary, or wait until the replica reaches it.",
  "CLUSTERDOWN, TRYAGAIN": "Wait until the Cluster serves the slot again.",
  NOREPLICAS: "Start replicas, or lower min-replicas-to-write.",
  "max number of clients reached, max concurrent connections exceeded":
    "Open fewer connections, or raise the limit.",
  WRONGTYPE: "Another program has written a key such as redlock:lock:{name}. Rename or delete it.",
  "HTTP 429": "Send less. Calls wait for as long as the header retry-after says.",
};

const ofProxy = /^network .*(CERT|SSL|TLS|SIGNATURE)/;
const ofToken = /^\w+ 40[13]|WRONGPASS|NOAUTH|unauthorized|invalid token|without any password/i;
const ofTls = /^network .*(WRONG_VERSION|RESP type|closed unexpectedly|ECONNRESET)/;
const rightUrl = "set {url} to the address of the database, not of a web page or a proxy";

/** By its kind, its status or 0, and its message: what to do about a failure. The first that fits counts. */
const remedies: readonly (readonly [code: string, pattern: RegExp, fix: string])[] = [
  [
    "CONFIG",
    /^config/,
    "copy {url} from the database's page; basePath and allowInsecure are options here, too",
  ],
  ["NOT_REST", /no answer of Upstash|^malformed/, rightUrl],
  ["TOKEN", ofToken, "set {token} to the right one: each database has its own, and a new one after a reset"],
  ["UNREACHABLE", /^timeout/, "is it stopped, or a firewall in between? To wait longer: --timeout 15000"],
  ["UNREACHABLE", /ECONNREFUSED/, "start it (local ones: npx redis-rest-local), or correct {url}"],
  ["UNREACHABLE", ofTls, "set {url} to a URL with TLS if the port has it, and to one without if it does not"],
  ["UNREACHABLE", ofProxy, "for a certificate of your own authority, set NODE_EXTRA_CA_CERTS to its file"],
  ["UNREACHABLE", /^network/, "check the network, and the host and port of {url}"],
  ["READ_ONLY", /NOPERM/, "set {token} to one that may write, not to a read-only one"],
  ["LIMIT", /^\w+ 429|limit/i, "the plan's limit is reached: wait until it is reset, or change the plan"],
  ["NOT_REST", /^http [1-4]/, rightUrl],
  ["SERVER", /^/, "the server has a problem; see its status page or its log, and try again"],
];

/** A failure, and what to do about it. */
export function remedyFor({ kind, status = 0, message }: Failure, variable: string): Advice {
  const [code, , usual] = remedies.find(([, pattern]) => pattern.test(`${kind} ${status} ${message}`))!;
  const known = Object.entries(serverRemedies).find(([errors]) =>
    errors.split(", ").some((said) => message.includes(said)),
  );
  const fix = (code === "SERVER" && known?.[1]) || worded(usual, variable);
  return { level: "error", code, message, fix };
}

/** A text with the words of the variable that names an endpoint. */
export function worded(text: string, variable: string): string {
  const isSocket = variable.startsWith("REDIS_URL");
  const token = isSocket ? `the password in ${variable}` : variable.replace("URL", "TOKEN");
  return text.replaceAll("{url}", variable).replaceAll("{token}", token);
}
