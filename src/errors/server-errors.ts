/**
 * Refusals that last: an equal request would fail again until somebody changes the settings, the plan or the program. Each is a
 * part of the server's message.
 *
 * Sources: Redis's `server.c`, `acl.c` and `script.c`, and https://upstash.com/docs/redis/troubleshooting. Upstash documents no
 * text for a database that is paused or archived, so that row stands for what gateways say.
 */
export const permanentErrors = [
  "WRONGPASS",
  "NOAUTH",
  "Invalid token",
  "Unauthorized",
  "NOPERM",
  "executing the script can't",
  "ACL failure in script",
  "unknown command",
  "Unknown Redis command",
  "Command is not available",
  "shebang",
  "compiling script",
  "syntax error",
  "CROSSSLOT",
  "MOVED",
  "ASK",
  "max daily request limit exceeded",
  "max requests limit exceeded",
  "max request size exceeded",
  "max key size exceeded",
  "max single record size exceeded",
  "database is paused",
  "database is archived",
  "database is deleted",
] as const;
