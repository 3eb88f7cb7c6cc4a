import type { Call } from "../endpoints/call.ts";
import type { Round } from "../quorum/round.ts";
import { keyOf } from "../redis/keys.ts";
import { type Register, type RegisterAnswer, release } from "../redis/register.ts";
import type { Settings } from "./options.ts";

// How waiters learn that a lock may be free. A message is a hint and never a proof: it may be lost, late, doubled or
// forged, so every acquire is decided by its rounds, and a waiter that gets no message asks by itself.

/** A way to wake up waiters: `pubSub`. */
export interface WakeUp {
  /** Releases as `release` of the register does, and publishes to the channels where it deleted something. */
  release(
    call: Call,
    register: Register,
    retention: number,
    channels: readonly string[],
  ): Promise<RegisterAnswer>;
  /** Waits on these channels for one call; the first `wait` subscribes. */
  listen(settings: Settings, channels: readonly string[]): Listener;
}

/** The waiting of one call. */
export interface Listener {
  /** Resolves when it is time to ask again, or as soon as `signal` aborts; the caller checks which. */
  wait(pause: Pause): Promise<void>;
  /** Ends the subscriptions. */
  close(): void;
}

/** A pause between two rounds. */
export interface Pause {
  /** The round that was refused. */
  readonly round: Round<RegisterAnswer>;
  /** ms to pause where no stream can be had. */
  readonly poll: number;
  /** ms to pause at most. */
  readonly longest: number;
  readonly signal: AbortSignal | undefined;
}

/** The channel of a resource's releases. `kind`: `lock`, or a synchronizer's. */
export function channelOf(prefix: string, kind: string, resource: string): string {
  // Upstash's streams separate the parts of a message by commas. Two resources that share a channel only wake each other.
  return keyOf(prefix, `wake-${kind}`, resource).replaceAll(",", ".");
}

/** The channels on which a release is published; undefined: on none. A plain lock has those of its resources. */
export function channelsOf(
  { wakeUp, prefix }: Pick<Settings, "wakeUp" | "prefix">,
  resources: readonly string[],
  operations: { readonly channel?: string } | undefined,
): readonly string[] | undefined {
  if (!wakeUp) return undefined;
  if (!operations) return resources.map((resource) => channelOf(prefix, "lock", resource));
  return operations.channel === undefined ? undefined : [operations.channel];
}

/** How a lock is released on one endpoint: with a message where somebody may be waiting for one. */
export function releaseOf(
  settings: Pick<Settings, "wakeUp" | "prefix">,
  resources: readonly string[],
  operations: { readonly channel?: string } | undefined,
): (call: Call, register: Register, retention: number) => Promise<RegisterAnswer> {
  const { wakeUp } = settings;
  const channels = channelsOf(settings, resources, operations);
  if (!wakeUp || !channels) return release;
  return (call, register, retention) => wakeUp.release(call, register, retention, channels);
}
