import type { CommandResult } from "./lock-server.ts";

type Command = readonly (string | number)[];

/** Executes the commands of one request. Resolves with the outcome of each. */
type Execute = (commands: readonly Command[], signal: AbortSignal) => Promise<readonly CommandResult[]>;

/** A command, from the call to its outcome. */
interface Pending {
  readonly command: Command;
  readonly signal: AbortSignal;
  readonly resolve: (result: CommandResult) => void;
  readonly reject: (cause: unknown) => void;
}

/**
 * A function that sends one command, with all others of the same turn of the event loop in one request. It rejects as soon as
 * its signal aborts. A request is given up once nobody waits for it any more.
 */
export function inTurns(execute: Execute): (command: Command, signal: AbortSignal) => Promise<CommandResult> {
  let waiting: Pending[] = [];
  const send = () => {
    const turn = waiting;
    waiting = [];
    // Those whose signals have aborted must not be executed after their rollbacks.
    for (const { signal, reject } of turn) if (signal.aborted) reject(signal.reason);
    const batch = turn.filter(({ signal }) => !signal.aborted);
    if (batch.length > 0) void sendTogether(execute, batch);
  };
  return (command, signal) =>
    new Promise((resolve, reject) => {
      waiting.push({ command, signal, resolve, reject });
      // Each asks for it: should the platform drop what one request began, the next one does not wait for that.
      queueMicrotask(send);
    });
}

async function sendTogether(execute: Execute, batch: readonly Pending[]): Promise<void> {
  const controller = new AbortController();
  let open = batch.length;
  const ends = batch.map(({ signal, reject }) => {
    const leave = () => {
      reject(signal.reason);
      open -= 1;
      if (open === 0) controller.abort();
    };
    signal.addEventListener("abort", leave);
    return () => signal.removeEventListener("abort", leave);
  });
  const commands = batch.map(({ command }) => command);
  try {
    const results = await execute(commands, controller.signal);
    for (const [index, { resolve }] of batch.entries()) resolve(results[index]!);
  } catch (cause) {
    for (const { reject } of batch) reject(cause);
  } finally {
    for (const end of ends) end();
  }
}
