import { expect } from "vitest";
import { CallSignal } from "../../src/endpoints/call-signal.ts";
import type { EndpointCall } from "../../src/endpoints/endpoint-call.ts";
import type { CellAnswer } from "../../src/redis/cell.ts";
import { type Script, textOf } from "../../src/redis/script.ts";
import type { SteppingRuntime } from "./stepping-runtime.ts";
import { virtualWorld } from "./virtual-client.ts";

/** One endpoint in virtual time, which knows a script. */
export interface ScriptWorld {
  readonly runtime: SteppingRuntime;
  execute(...command: (string | number)[]): unknown;
  /** A request to the endpoint. */
  call(): EndpointCall;
  /** Performs an operation that reports as its cost what the endpoint bills. */
  run<Answer extends CellAnswer>(operation: (call: EndpointCall) => Promise<Answer>): Promise<Answer>;
  /** Subscribes to a channel. Returns what takes the messages that have come since. */
  listen(channel: string): () => string[];
}

/** A {@link ScriptWorld}. Its clock shows 999 ms after a full second. */
export async function scriptWorld(script: Script): Promise<ScriptWorld> {
  const { runtime, endpoints } = virtualWorld({ count: 1 });
  const { engine, log } = endpoints[0]!;
  engine.execute(["SCRIPT", "LOAD", textOf(script.source, "redis")]);
  await runtime.advance(999);
  const call = () => ({
    endpoint: endpoints[0]!,
    signal: new CallSignal(),
    cost: { requests: 0, commands: 0 },
  });
  return {
    runtime,
    call,
    execute: (...command) => engine.execute(command),
    async run(operation) {
      const own = call();
      const answer = await operation(own);
      expect(own.cost.commands).toBe(log.at(-1)!.billed);
      return answer;
    },
    listen(channel) {
      const messages: string[] = [];
      engine.subscribe([channel], ([kind, , message]) => {
        if (kind === "message") messages.push(String(message));
      });
      return () => messages.splice(0);
    },
  };
}
