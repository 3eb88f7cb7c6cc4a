import type { Failure } from "../access.ts";

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

const unreachable = "UNREACHABLE";
const copied = "copy {url}, with its token or password, from the database's page";
const rightUrl = "set {url} to {address}, not to the address of a web page or a proxy";

/** By its kind, its status or 0, and its message: what to do about a failure. The first that fits counts. */
const remedies: readonly (readonly [code: string, pattern: RegExp, fix: string])[] = [
  [
    "SAME_DATABASE",
    /^config 0 it is the same/,
    "set {url} to another database, or remove it: each counts once",
  ],
  ["CONFIG", /^config .*basePath/, `${copied}; the base path of a gateway is --base-path here`],
  ["CONFIG", /^config .*allowInsecure/, `${copied}; to check it nevertheless: --allow-insecure`],
  ["CONFIG", /^config .*Redis protocol/, "name all of them REDIS_URL_1, …, and set no REST variables"],
  ["CONFIG", /^config/, copied],
  ["NOT_REST", /no answer of Upstash/, rightUrl],
  [
    "TOKEN",
    /^\w+ 40[13]|WRONGPASS|NOAUTH|unauthorized|invalid token|without any password/i,
    "set {token} to the right one: each database has its own, and a new one after a reset",
  ],
  [unreachable, /^timeout/, "is it stopped, or a firewall in between? To wait longer: --timeout 15000"],
  [unreachable, /^network .*ECONNREFUSED/, "check the host and port of {url}; {start}"],
  [
    unreachable,
    /^network .*(WRONG_VERSION|RESP type|closed unexpectedly|ECONNRESET)/,
    "set {url} to a URL with TLS if the port has it, and to one without if it does not",
  ],
  [
    unreachable,
    /^network .*(CERT|SSL|TLS|SIGNATURE)/,
    "TLS failed: check {url}. If the server or a proxy has a certificate of your own authority, name its file in NODE_EXTRA_CA_CERTS",
  ],
  [unreachable, /^network/, "check the network, and the host and port of {url}"],
  ["READ_ONLY", /NOPERM/, "set {token} to one that may write, not to a read-only one"],
  ["LIMIT", /^\w+ 429|limit/i, "the plan's limit is reached: wait until it is reset, or change the plan"],
  ["NOT_REST", /^malformed|^http [1-4]/, rightUrl],
  ["SERVER", /^/, "the server has a problem; see its status page or its log, and try again"],
];

/** What stands before the messages of two codes. */
const prefaces: Readonly<Record<string, string>> = {
  TOKEN: "it refuses {token}: ",
  READ_ONLY: "{token} may not write: ",
};

/** The words in braces, for an endpoint that this variable names. */
function wordsFor(url: string): Readonly<Record<string, string>> {
  if (url.startsWith("REDIS_URL")) {
    const start = "if it is your own server, start it: redis-server --port <port>";
    const address = "the address of a Redis server, redis://host:port";
    return { url, token: `the password in ${url}`, address, start };
  }
  return {
    url,
    token: url.replace("URL", "TOKEN"),
    address: "the database's REST URL, https://….upstash.io",
    start: "for local endpoints, start npx redis-rest-local, and use the variables that it prints",
  };
}

/** A failure, and what to do about it, in the words of the variable that names the endpoint. */
export function remedyFor({ kind, status = 0, message }: Failure, variable: string) {
  const [code, , usual] = remedies.find(([, pattern]) => pattern.test(`${kind} ${status} ${message}`))!;
  const known = Object.entries(serverRemedies).find(([errors]) =>
    errors.split(", ").some((said) => message.includes(said)),
  );
  const words = wordsFor(variable);
  const inWords = (text: string) => text.replaceAll(/\{(\w+)\}/g, (_, word: string) => words[word]!);
  const fix = (code === "SERVER" && known?.[1]) || inWords(usual);
  return { code, message: inWords(prefaces[code] ?? "") + message, fix };
}
