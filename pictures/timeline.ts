// What happened between clients and endpoints, as the pictures draw it.

export interface Timeline {
  /** What the picture shows, in one sentence. */
  readonly title: string;
  /** The lanes, from top to bottom. */
  readonly clients: readonly string[];
  readonly endpoints: readonly string[];
  /** ms from its beginning to its end. */
  readonly to: number;
  /** In the order of their times. */
  readonly events: readonly TimelineEvent[];
}

/** `held`: refused because another has it. `gone`: it was not there any more. `error`: no usable answer. */
export type Outcome = "granted" | "held" | "gone" | "error";

/** `time`: in ms since the beginning. */
export type TimelineEvent = Happening & { readonly time: number };

export type Happening =
  | ({ readonly phase: "called" } & CallOfClient)
  | ({ readonly phase: "returned" } & CallOfClient & Result)
  | ({ readonly phase: "sent" } & Request)
  // `until`: when it would have arrived.
  | { readonly phase: "lost"; readonly request: string; readonly until: number }
  | ({ readonly phase: "executed" | "answered"; readonly request: string } & Answer)
  | ({ readonly phase: "stored"; readonly until: number; readonly fence?: number | undefined } & Value)
  | ({ readonly phase: "removed" } & Value)
  | ({ readonly phase: "valid" } & Validity)
  | { readonly phase: "ended"; readonly client: string; readonly key: string }
  // `name`: what the picture calls it.
  | { readonly phase: "frozen"; readonly client: string; readonly name: string }
  | { readonly phase: "thawed"; readonly client: string }
  | ({ readonly phase: "violated" | "upheld" } & Verdict);

/** A call of the library, or of what it is compared with. A client makes one after the other. */
interface CallOfClient {
  readonly client: string;
  readonly operation: string;
  readonly key: string;
}

interface Result {
  readonly outcome: Exclude<Outcome, "gone">;
  /** The result in a word, if the outcome's own says less. */
  readonly name?: string;
  /** By endpoint. */
  readonly votes?: Readonly<Record<string, Outcome>>;
  readonly fence?: number | undefined;
  /** ms for which the client may rely on what it got. */
  readonly validity?: number;
  readonly detail?: string;
}

export interface Request {
  readonly client: string;
  readonly endpoint: string;
  readonly request: string;
  readonly operation: string;
  readonly key?: string | undefined;
}

export interface Answer {
  readonly outcome: Outcome;
  /** A sentence with more. */
  readonly detail?: string | undefined;
}

/** What is stored at an endpoint. */
interface Value {
  readonly endpoint: string;
  readonly key: string;
  /** The client that stored it. */
  readonly holder: string;
}

/** A client relies on what it got until `safe`. The rest, until `until`, is taken off for drift. */
interface Validity {
  readonly client: string;
  readonly key: string;
  readonly fence?: number | undefined;
  readonly safe: number;
  readonly until: number;
}

/** A promise that was kept or broken, as seen at an endpoint. */
interface Verdict {
  readonly endpoint: string;
  readonly name: string;
  readonly detail?: string | undefined;
}
