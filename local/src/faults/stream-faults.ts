import { eventStream, isMessage } from "../event-stream.ts";
import type { Runtime } from "../runtime.ts";
import type { Faults } from "./faults.ts";

/** What {@link withStreamFaults} needs. */
export interface StreamFaultOptions {
  readonly faults: Pick<Faults, "plan">;
  /** The command that opened the stream, for the rules that are for one command. */
  readonly command: string;
  readonly timer: Runtime["timer"];
}

/** Passes the events of a stream on, of which each chunk is one, with the faults that are planned for it. */
export function withStreamFaults(
  source: ReadableStream<Uint8Array>,
  { faults, command, timer }: StreamFaultOptions,
): ReadableStream<Uint8Array> {
  const { "cut-stream": cut, "silent-stream": silent } = faults.plan(command, "stream");
  const reader = source.getReader();
  const timers = new Set<() => void>();
  const stream = eventStream(() => {
    for (const cancel of timers) cancel();
    // Whether the source could be cancelled does not matter to the client.
    reader.cancel().catch(() => undefined);
  });
  function later(ms: number, run: () => void): void {
    const cancel = timer(ms, () => {
      timers.delete(cancel);
      run();
    });
    timers.add(cancel);
  }

  function pass(event: Uint8Array): void {
    if (!isMessage(event)) {
      stream.send(event);
      return;
    }
    if (silent) return;
    const plan = faults.plan(command, "message");
    if (plan["drop-message"]) return;
    const send = () => {
      stream.send(event);
      if (plan["duplicate-message"]) stream.send(event);
    };
    if (plan["delay-message"]) later(plan["delay-message"].ms, send);
    else send();
  }

  async function passAll(): Promise<void> {
    for (let next = await reader.read(); next.value; next = await reader.read()) pass(next.value);
    stream.end();
  }

  if (cut) later(cut.ms, () => stream.end(cut.reset ? new Error("the connection was reset") : undefined));
  passAll().catch((error: unknown) => stream.end(error));
  return stream.body;
}
