import type { Ask } from "../../src/endpoints/ask.ts";
import { type Script, textOf } from "../../src/redis/script.ts";
import { askOf } from "./ask.ts";
import type { SteppingRuntime } from "./stepping-runtime.ts";
import { virtualWorld } from "./virtual-client.ts";

/** One endpoint in virtual time, which knows a script. */
export interface ScriptWorld {
  readonly runtime: SteppingRuntime;
  execute(...command: (string | number)[]): unknown;
  /** A request to the endpoint. */
  call(): Ask;
  /** Subscribes to a channel. Returns what takes the messages that have come since. */
  listen(channel: string): () => string[];
}

/** A {@link ScriptWorld}. Its clock shows 999 ms after a full second. */
export async function scriptWorld(script: Script): Promise<ScriptWorld> {
  const { runtime, endpoints } = virtualWorld({ count: 1 });
  const { engine } = endpoints[0]!;
  engine.execute(["SCRIPT", "LOAD", textOf(script.source, "redis")]);
  await runtime.advance(999);
  return {
    runtime,
    call: () => askOf(endpoints[0]!),
    execute: (...command) => engine.execute(command),
    listen(channel) {
      const messages: string[] = [];
      engine.subscribe([channel], ([kind, , message]) => {
        if (kind === "message") messages.push(String(message));
      });
      return () => messages.splice(0);
    },
  };
}
