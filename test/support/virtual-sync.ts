import { freeScript } from "../../src/inspect/free.lua.ts";
import { keyOf } from "../../src/redis/keys.ts";
import { textOf } from "../../src/redis/script.ts";
import { arrivalScript } from "../../src/sync/internal/arrival.lua.ts";
import { intervalScript } from "../../src/sync/internal/interval.lua.ts";
import { mailboxScript } from "../../src/sync/internal/mailbox.lua.ts";
import { memberScript } from "../../src/sync/internal/member.lua.ts";
import { queueScript } from "../../src/sync/internal/queue.lua.ts";
import { slotScript } from "../../src/sync/internal/slot.lua.ts";
import { type VirtualClient, type VirtualWorld, virtualWorld, watch } from "./virtual-client.ts";

/** A {@link VirtualWorld} of synchronizers. */
export interface SyncWorld extends VirtualWorld {
  /** Executes a command about a synchronizer's key on every endpoint; returns the replies. */
  each(command: string, kind: string, name: string, ...rest: (string | number)[]): unknown[];
  /** The same on the endpoints of these indices. */
  at(
    indices: readonly number[],
    command: string,
    kind: string,
    name: string,
    ...rest: (string | number)[]
  ): unknown[];
  /** The result of a call that takes no time, though it may send several rounds. */
  atOnce<Value>(call: Promise<Value>): Promise<Value>;
  /** Everything that is stored on one endpoint, with ttls in ms, by key. */
  ttls(index?: number): Record<string, number>;
}

/** How many requests an endpoint answers. Time stands still in an endless loop of them, so that no test would end. */
const mostRequests = 1_000;

const scripts = [
  arrivalScript,
  freeScript,
  intervalScript,
  mailboxScript,
  memberScript,
  queueScript,
  slotScript,
];

/** A world whose endpoints know every script of synchronizers, so that every request is sent once. */
export function newWorld(options: Parameters<typeof virtualWorld>[0] = {}): SyncWorld {
  const world = virtualWorld(options);
  const { endpoints } = world;
  for (const endpoint of endpoints) {
    const { engine, dialect, log } = endpoint;
    const send = endpoint.send.bind(endpoint);
    endpoint.send = (command, signal) =>
      log.length < mostRequests ? send(command, signal) : new Promise(() => undefined);
    for (const { source } of scripts) engine.execute(["SCRIPT", "LOAD", textOf(source, dialect)]);
  }
  const at: SyncWorld["at"] = (indices, command, kind, name, ...rest) =>
    indices.map((index) =>
      endpoints[index]!.engine.execute([command, keyOf("redlock", kind, name), ...rest]),
    );
  return {
    ...world,
    at,
    each: (command, kind, name, ...rest) => at([...endpoints.keys()], command, kind, name, ...rest),
    async atOnce(call) {
      const watched = watch(call);
      await world.runtime.advance(0);
      if (!watched.settled) throw new Error("the call takes time");
      return call;
    },
    ttls(index = 0) {
      const { engine } = endpoints[index]!;
      const names = engine.execute(["KEYS", "*"]) as string[];
      return Object.fromEntries(names.sort().map((name) => [name, engine.execute(["PTTL", name]) as number]));
    },
  };
}

/** By link: how many requests it has sent. */
export function sentBy({ links }: VirtualClient): number[] {
  return links.map(({ sent }) => sent.length);
}
