import { CountDownLatch, type SynchronizerKind } from "../sync/index.ts";
import type { Client } from "./client.ts";
import { type CommandEnvironment, type ExitCode, exitCode, integer, UsageError } from "./command.ts";
import { costText } from "./cost.ts";
import { jsonLine, labelled, printable } from "./text.ts";

/** What `inspect --kind` is asked for. */
export interface LatchRequest {
  readonly name: string;
  readonly kind: SynchronizerKind;
  /** How many arrivals open it. */
  readonly count: string | undefined;
  readonly json: boolean | undefined;
}

/** `redlock-edge inspect --kind count-down-latch`: the one synchronizer that can be inspected. */
export async function inspectLatch(
  client: Client,
  { name, kind, count, json }: LatchRequest,
  { out }: CommandEnvironment,
): Promise<ExitCode> {
  if (kind !== "CountDownLatch") {
    throw new UsageError(`a ${kind} cannot be inspected, a CountDownLatch can; free --kind frees both`);
  }
  if (count === undefined) throw new UsageError("--count is missing: how many arrivals open the latch");
  const latch = new CountDownLatch(client.redlock, name, { count: integer("--count", count) });
  const { value: state, cost } = await client.run(() => latch.inspect());
  if (json) out(jsonLine({ command: "inspect", resource: name, kind, ...state, cost }));
  else {
    const { open, arrived, remaining } = state;
    const lines = labelled([
      ["arrivals", [`${arrived} of ${count}, ${remaining} missing`]],
      ["cost", [costText(cost)]],
    ]);
    for (const line of [`${name} is ${open ? "open" : "closed"}`, ...lines]) out(printable(line));
  }
  return state.open ? exitCode.done : exitCode.nothing;
}
