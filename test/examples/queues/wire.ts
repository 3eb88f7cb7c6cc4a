import { onTestFinished } from "vitest";
import type { LocalEndpoint } from "../../../local/src/index.ts";
import { type RawReply, type RawRequest, startRawServer } from "../../support/raw-server.ts";

/** What a receiver or a consumer does: it claims the key, sends the message or has the effect, and stores the result. */
export type Step = "claims" | "acts" | "stores";

/** Where a program is killed: before its request has left, or when that was executed and its answer has not arrived. */
export interface Cut {
  readonly step: Step;
  readonly when: "before" | "after";
}

/** All connections of a program that can be killed at one of its requests. */
export interface Wire {
  /** Kills the program at the next such request, once. */
  cut: Cut | undefined;
  /** What the program reads from its environment: its one database, through the wire. */
  readonly env: Readonly<Record<string, string>>;
  /** The URL of a server that forwards to this one. */
  to(target: string): Promise<string>;
}

/**
 * Opens the wire of a program, until the test ends.
 *
 * If the program dies, its database counts as after the lease: the claim of the dead program is gone.
 */
export async function openWire(endpoint: LocalEndpoint): Promise<Wire> {
  const claimed = new Set<string>();

  async function dies(): Promise<RawReply> {
    for (const key of claimed) {
      // A result that was stored stays for days.
      if (((await endpoint.execute(["PTTL", key])) as number) <= 60_000) await endpoint.execute(["DEL", key]);
    }
    return { headers: { "x-kill": "1" } };
  }

  async function to(target: string): Promise<string> {
    const server = await startRawServer(async (request) => {
      const step = stepOf(request);
      if (step === "claims") claimed.add(keyOf(request));
      const { step: end, when } = wire.cut ?? {};
      if (step === end) wire.cut = undefined;
      if (step === end && when === "before") return dies();
      const reply = await forward(request, target);
      return step === end ? dies() : reply;
    });
    onTestFinished(() => server.close());
    return server.url;
  }

  const wire: Wire = {
    cut: undefined,
    env: { UPSTASH_REDIS_REST_URL: await to(endpoint.url), UPSTASH_REDIS_REST_TOKEN: endpoint.token },
    to,
  };
  return wire;
}

function stepOf({ command }: RawRequest): Step {
  if (command.length === 0) return "acts";
  return ["NX", "claim", "prove"].some((word) => command.includes(word)) ? "claims" : "stores";
}

/** The key that a claim names: the script has its text or hash, and the number of keys, before it. */
function keyOf({ command }: RawRequest): string {
  return command[command[0] === "SET" ? 1 : 3]!;
}

/** Sends a request on, and returns its answer. */
async function forward({ path, method, headers, body }: RawRequest, target: string): Promise<RawReply> {
  const sent = new Headers(headers as Record<string, string>);
  for (const name of [...ofConnections, "host"]) sent.delete(name);
  const answer = await fetch(target + path, { method, headers: sent, body });
  const received = new Headers(answer.headers);
  for (const name of ofConnections) received.delete(name);
  return { status: answer.status, headers: Object.fromEntries(received), body: await answer.text() };
}

const ofConnections = ["connection", "keep-alive", "transfer-encoding", "content-encoding", "content-length"];
