// What happened between clients and endpoints, as the picture draws it: one format for the playground and the docs.

/** A recording: a JSON file, or what has happened so far. */
export interface Timeline {
  readonly version: 1;
  /** What the picture shows, in one sentence. */
  readonly title: string;
  /** The lanes, from top to bottom. What names another one is not drawn. */
  readonly clients: readonly string[];
  readonly endpoints: readonly string[];
  /** The time that is shown, in ms on the recorder's clock; the picture counts from it. Default: of all events. */
  readonly from?: number;
  readonly to?: number;
  /** In the order of their times. */
  readonly events: readonly TimelineEvent[];
}

/**
 * One event. Which members it has depends on its phase:
 *
 * | phase | at | members |
 * | --- | --- | --- |
 * | `called`, `returned` | a client | `operation`, `call`, `key`; `returned`: `outcome`, `name`, `votes`, `fence`, `validity` |
 * | `sent` | a client, to an endpoint | `request`, `operation`, `key`, `call`; the key is by default that of its call |
 * | `executed` | an endpoint, for a client | `request`, `outcome` |
 * | `answered` | a client, from an endpoint | `request`, `outcome` |
 * | `lost` | between the two | `request`, `what`: the request or the reply |
 * | `stored`, `removed` | an endpoint | `key`, `holder`, `until`, `fence` |
 * | `valid`, `ended` | a client | `key`, `fence`, `until`, `safe`; `valid` again: it was extended |
 * | `fault`, `healed` | a client, an endpoint, or both | `name` |
 * | `violated`, `upheld` | a client, an endpoint or neither | `name`: the invariant, or how it was upheld; `detail` |
 *
 * Values are told apart by endpoint, key and holder: a semaphore has several at one key. Before another holder's value
 * replaces one, there must be a `removed`; the same holder's value with another fence replaces its own.
 */
export interface TimelineEvent {
  /** ms on the recorder's clock. */
  readonly time: number;
  readonly phase: Phase;
  /** One of the recording's clients. */
  readonly client?: string;
  /** One of the recording's endpoints. */
  readonly endpoint?: string;
  /** `acquire`, `extend`, `release`, `verify`, `begin`, `complete`, …, or a command's name. */
  readonly operation?: string;
  /** Links the calls of the library with their requests. */
  readonly call?: string;
  /** Links what happens to one request. */
  readonly request?: string;
  /** The resource, or the key where the source knows no better. */
  readonly key?: string;
  readonly outcome?: Outcome;
  /** By endpoint: how it voted in the call. */
  readonly votes?: Readonly<Record<string, Outcome>>;
  /** The fencing token. */
  readonly fence?: number;
  /** ms for which a call that returned may rely on what it got. */
  readonly validity?: number;
  /** The client whose value is stored. */
  readonly holder?: string;
  /** When what is stored expires, or a validity ends, unless an event says so before; ms on the recorder's clock. */
  readonly until?: number;
  /** When the part of a validity begins that is taken off for drift: from then on the client does not rely on it. */
  readonly safe?: number;
  /** What was lost. */
  readonly what?: "request" | "reply";
  /** A fault's or an invariant's name. `paused` and `frozen` clients are hatched. Of a call: its result in a word. */
  readonly name?: string;
  /** A sentence with more. */
  readonly detail?: string;
}

export type Phase =
  | "called"
  | "returned"
  | "sent"
  | "executed"
  | "answered"
  | "lost"
  | "stored"
  | "removed"
  | "valid"
  | "ended"
  | "fault"
  | "healed"
  | "violated"
  | "upheld";

/** `held`: refused because another has it. `gone`: it was not there any more. `error`: no usable answer. */
export type Outcome = "granted" | "held" | "gone" | "error";
