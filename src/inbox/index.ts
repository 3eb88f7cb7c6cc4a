/**
 * Commit an event and its effect in one transaction of Postgres or D1.
 *
 * @module redlock-edge/inbox
 */
export { type D1, type D1Statement, onceInD1 } from "./d1.ts";
export type { Execute } from "./enter.ts";
export {
  deliveryKey,
  type InboxEntry,
  type InboxOutcome,
  type NotFirst,
  StaleFenceError,
  TransactionEndedError,
} from "./entry.ts";
export { onceInPostgres, type SqlClient, type SqlPool } from "./postgres.ts";
export { d1Schema, mysqlSchema, postgresSchema } from "./schemas.ts";
export { type DialectOptions, onceInTransaction, type PruneOptions, pruneInbox } from "./transaction.ts";
