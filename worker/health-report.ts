import type { EndpointFailure } from "./failure.ts";

/** The answer of `GET /healthz` to who is signed in: names and no secret. A stranger gets its status alone. */
export interface Health {
  /** `ok` when a quorum of the endpoints and the database answer. */
  readonly status: "ok" | "unavailable";
  /** The senders that have a secret. */
  readonly senders: readonly string[];
  /** How many endpoints answered, and how many must for a delivery to be handled. */
  readonly quorum: { readonly answered: number; readonly needed: number };
  readonly endpoints: readonly EndpointHealth[];
  readonly database: DatabaseHealth;
}

/** Whether one endpoint answered as Redis does; an answer to a wrong token does not count. */
export interface EndpointHealth {
  readonly name: string;
  readonly answered: boolean;
  /** Why its answer does not count. */
  readonly failure?: EndpointFailure;
}

/** Whether D1 answered a query of all tables. */
export interface DatabaseHealth {
  readonly answered: boolean;
  /** `error`: the query failed, and the Worker's log has the cause. */
  readonly failure?: { readonly kind: "timeout" | "error" };
}
