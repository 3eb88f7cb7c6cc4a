import type { Vote } from "../src/index.ts";
import type { EndpointFailure } from "./failure.ts";

/** The outcomes of a delivery, as in the column `deliveries.outcome` (schema.sql). */
export const outcomes = ["executed", "replayed", "busy", "refused", "failed"] as const;

/** One of {@link outcomes}. */
export type Outcome = (typeof outcomes)[number];

/** One endpoint's answer in a round without a quorum. */
export interface JournalVote {
  readonly endpoint: string;
  readonly outcome: Vote["outcome"];
  /** Of the outcome `error`. */
  readonly failure?: EndpointFailure;
}

/** A row of the table `deliveries`, with its row of `delivery_problems` where it has one. */
export interface DeliveryRow {
  readonly id: number;
  readonly at: number;
  readonly provider: string;
  readonly delivery: string | null;
  readonly event: string | null;
  readonly entity: string | null;
  readonly outcome: Outcome;
  readonly status: number;
  readonly fence: number | null;
  readonly requests: number;
  readonly commands: number;
  readonly ms: number;
  /** Why it was busy, refused or failed: a sentence for people. */
  readonly reason: string | null;
  /** What each endpoint answered, where no quorum was the reason. */
  readonly votes: readonly JournalVote[] | null;
}

/** A row of the table `entities`. */
export interface EntityRow {
  readonly entity: string;
  readonly events: number;
  readonly last_event: string;
  readonly last_delivery: string;
  readonly updated_at: number;
  readonly fence: number;
}
