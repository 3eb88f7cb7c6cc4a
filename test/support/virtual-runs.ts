import { expect } from "vitest";
import {
  Idempotency,
  type IdempotencyEvent,
  type IdempotencyOptions,
  type RunContext,
  type RunOptions,
} from "../../src/idempotency/index.ts";
import type { LockOptions } from "../../src/index.ts";
import { gate, type Link } from "./link.ts";
import { until } from "./until.ts";
import { type VirtualWorld, watch } from "./virtual-client.ts";

/** A handler that may not run. */
export const never = (): never => expect.unreachable("nothing may run");

/** A client of idempotent runs in virtual time. */
export interface Runner {
  readonly idempotency: Idempotency;
  readonly links: readonly Link[];
  /** How its calls ended. */
  readonly events: IdempotencyEvent[];
  /** How many requests it has sent. */
  readonly sent: () => number;
  /** Waits until the requests of a call are sent: its key is hashed in real time. */
  readonly started: (since?: number) => Promise<void>;
}

/** A new client; `defaults`: of its locks. The timeout of its requests is 100 ms; results are kept for 60 000 ms. */
export function runner(
  world: VirtualWorld,
  options: IdempotencyOptions = {},
  defaults: LockOptions = {},
): Runner {
  const { redlock, links } = world.client(defaults);
  const events: IdempotencyEvent[] = [];
  const onEvent = (event: IdempotencyEvent) => void events.push(event);
  const idempotency = new Idempotency(redlock, { retention: 60_000, onEvent, ...options });
  const sent = () => links.flatMap((each) => each.sent).length;
  const started = async (since = 0) => {
    await until(() => sent() > since, "its requests");
    await world.runtime.advance(0);
  };
  return { idempotency, links, events, sent, started };
}

/** A run of `key` whose handler has begun, and ends with what the gate is opened with. */
export async function running(
  client: Runner,
  options: Pick<RunOptions<unknown>, "deadline" | "lock" | "note"> = {},
) {
  const end = gate<unknown>();
  let context: RunContext | undefined;
  const sent = client.sent();
  const call = watch(
    client.idempotency.run<unknown>("key", options, (given) => {
      context = given;
      return end.passed;
    }),
  );
  await client.started(sent);
  return { call, end, context: () => context! };
}

type Kind = "idem" | "tries" | "flight";

/** The replies to a command about the only key of a kind, by endpoint; null where there is none. */
function ask<Reply>({ endpoints }: VirtualWorld, command: string, kind: Kind): (Reply | null)[] {
  return endpoints.map(({ engine }) => {
    const [name] = engine.execute(["KEYS", `redlock:${kind}:*`]) as string[];
    return name === undefined ? null : (engine.execute([command, name]) as Reply);
  });
}

/** The record of the only key by endpoint, or its count of runs; null where there is none. */
export function textsOf(world: VirtualWorld, kind: Kind = "idem"): (string | null)[] {
  return ask<string>(world, "GET", kind);
}

/** {@link textsOf} the records, without their tokens, times and fingerprints. */
export function records(world: VirtualWorld): (string | null)[] {
  return textsOf(world).map((text) => {
    if (text === null) return null;
    const [kind, , , , ...rest] = text.split(" ");
    return [kind, ...rest].join(" ");
  });
}

/** ms until the record of the only key expires, by endpoint; null where there is none. */
export function ttls(world: VirtualWorld, kind: Kind = "idem"): (number | null)[] {
  return ask<number>(world, "PTTL", kind);
}

/** Refuses all further requests. */
export function silence(links: readonly Link[]): void {
  for (const each of links) each.fate = () => "refused";
}

/** Puts texts in place of the record of `key` at these endpoints, as other runs would; takes 1 000 ms. */
export async function put(
  world: VirtualWorld,
  texts: readonly (string | undefined)[],
  ttl = 30_000,
  kind: "run" | "flight" = "run",
): Promise<void> {
  const { idempotency, links, started } = runner(world);
  silence(links);
  // Only to learn the record's name.
  const options: object = { kind };
  void idempotency.run("key", options, () => undefined).catch(() => undefined);
  await started();
  await world.runtime.advance(1_000);
  const name = String(links[0]!.sent[0]!.find((word) => /^redlock:(idem|flight):/.test(String(word))));
  texts.forEach((text, index) => {
    if (text !== undefined) world.endpoints[index]!.engine.execute(["SET", name, text, "PX", ttl]);
  });
}
