/**
 * Parts of messages of refusals that last until somebody changes something.
 *
 * Sources: Redis's `server.c`, `acl.c` and `script.c`, and https://upstash.com/docs/redis/troubleshooting. For a paused
 * or archived database, a gateway's words.
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
