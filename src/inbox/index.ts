/** @module redlock-edge/inbox */
export { type D1, type D1Statement, d1Schema, onceInD1, pruneD1 } from "./d1.ts";
export {
  deliveryKey,
  type InboxEntry,
  type InboxOutcome,
  type PruneOptions,
  StaleFenceError,
  TransactionEndedError,
} from "./entry.ts";
export { onceInPostgres, postgresSchema, prunePostgres, type SqlClient, type SqlPool } from "./postgres.ts";
