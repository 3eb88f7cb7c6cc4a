import type { Outcome } from "./timeline.ts";

// What a picture consists of, in times and lanes. layout.ts computes it.

/** A horizontal strip of the picture: one client, or one endpoint. */
export interface Lane {
  readonly kind: "client" | "endpoint";
  readonly name: string;
  /** What bars and legends call a client, so that it can be told apart without its colour. */
  readonly letter: string;
  /** The number of a client's colour; -1: an endpoint has none. */
  readonly colour: number;
  /** Rows of bars, one above the other. */
  readonly rows: number;
  /** Rows of the faults' names. */
  readonly faultRows: number;
}

/** A place in the picture. */
export interface Point {
  readonly lane: number;
  readonly time: number;
}

/** What is stored on an endpoint, or what a client holds. */
export interface Bar {
  readonly kind: "stored" | "validity";
  readonly lane: number;
  /** From 0, at the top. */
  readonly row: number;
  readonly from: number;
  readonly to: number;
  /** `open`: it goes on after the recording. `replaced`: by a value with another fence. */
  readonly end: "removed" | "expired" | "replaced" | "open";
  readonly key: string;
  /** The lane of the client that holds it; -1: not known. */
  readonly holder: number;
  readonly fence: number | undefined;
  /** When it expires, or expired, or would have expired. */
  readonly until: number | undefined;
  /** When it was written again, or extended. */
  readonly refreshed: readonly number[];
  /** Parts of a validity that are taken off for drift. */
  readonly unsafe: readonly Span[];
}

export interface Span {
  readonly from: number;
  readonly to: number;
}

/** A call of the library, from its beginning to its result. */
export interface Call extends Span {
  readonly lane: number;
  readonly operation: string;
  readonly key: string | undefined;
  /** Undefined: it has not returned. */
  readonly outcome: Outcome | undefined;
  /** Its result, if the outcome's own word says less. */
  readonly word: string | undefined;
  readonly votes: Readonly<Record<string, Outcome>> | undefined;
  readonly fence: number | undefined;
  readonly validity: number | undefined;
  readonly detail: string | undefined;
}

/** A fault, while it lasts. */
export interface Fault extends Span {
  readonly name: string;
  /** Where its name is written. */
  readonly lane: number;
  /** The other end, if it concerns the way between two. */
  readonly other: number | undefined;
  /** It was not healed while the recording went on. */
  readonly open: boolean;
  /** The client does not run meanwhile. */
  readonly hatched: boolean;
  readonly row: number;
  readonly detail: string | undefined;
}

/** An invariant that was broken or upheld. */
export interface Verdict {
  readonly isBroken: boolean;
  readonly time: number;
  /** -1: of everything. */
  readonly lane: number;
  readonly name: string;
  readonly detail: string | undefined;
}

/** All that is drawn. */
export interface Shapes extends Span {
  readonly title: string;
  readonly lanes: readonly Lane[];
  readonly bars: readonly Bar[];
  readonly flights: readonly Flight[];
  readonly calls: readonly Call[];
  readonly faults: readonly Fault[];
  readonly verdicts: readonly Verdict[];
  /** Whether bars name their keys: there are several. */
  readonly namesKeys: boolean;
}

/** All that is known of one request. */
export interface RequestHistory {
  readonly request: string;
  client: string | undefined;
  endpoint: string | undefined;
  operation: string | undefined;
  key: string | undefined;
  sent: number | undefined;
  answered: { time: number; outcome: Outcome | undefined } | undefined;
  detail: string | undefined;
  executed: { time: number; outcome: Outcome | undefined } | undefined;
  lost: { time: number; what: "request" | "reply" } | undefined;
}

/** A request or a reply on its way: a slanted line. */
export interface Flight {
  readonly kind: "request" | "reply";
  readonly from: Point;
  /** Where it arrives, or would have arrived. */
  readonly to: Point;
  /** `open`: nothing more is known of it. */
  readonly fate: "arrived" | "lost" | "open";
  /** It took much longer than others. */
  readonly late: boolean;
  readonly outcome: Outcome | undefined;
  /** The lane of the client. */
  readonly client: number;
  readonly history: RequestHistory;
}

/** How lanes are found while the shapes are made. */
export interface LaneIndex {
  client(name: string | undefined): number;
  endpoint(name: string | undefined): number;
}
