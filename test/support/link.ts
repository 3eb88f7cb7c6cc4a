import { readCommand } from "../../evidence/sim/wire/cell-requests.ts";
import type { Request } from "../../evidence/sim/wire/request.ts";
import { type Command, type Endpoint, EndpointError } from "../../src/index.ts";

/**
 * The fate of one request. `refused`: the connection is refused. `lost`: never executed, never answered. `reply lost`:
 * executed, then the connection breaks. `twice`: executed twice. `before` and `after` are awaited before it is executed
 * and before it is answered; it is executed even if its sender has given up by then.
 */
export type Fate =
  | "delivered"
  | "refused"
  | "lost"
  | "reply lost"
  | "twice"
  | { readonly before?: () => unknown; readonly after?: () => unknown };

/** What a command does. `restore`: it claims once more what a `keep` was to keep. */
export type Operation = Request["operation"];

/** What commands do. */
function operationsOf(sent: readonly Command[]): () => Operation[] {
  const operations: Operation[] = [];
  const kept = new Set<string>();
  return () => {
    for (const command of sent.slice(operations.length)) {
      const { operation, value } = readCommand(command);
      operations.push(operation === "claim" && kept.has(value) ? "restore" : operation);
      if (operation === "keep") kept.add(value);
    }
    return operations;
  };
}

/** The connection of one client to one endpoint. Its faults affect this client only. */
export interface Link extends Endpoint {
  /** Decides the fate of each request. `operation` returns what it does. Default: all are delivered. */
  fate: (command: Command, operation: () => Operation) => Fate;
  /** Every command that was sent, lost ones included. */
  readonly sent: Command[];
  /** What each of them does. */
  operations(): Operation[];
  /** Number of requests without an answer, also of senders that have given up. */
  readonly pending: number;
}

/** A link to `endpoint` without faults until `fate` is set. */
export function link(endpoint: Endpoint): Link {
  const { name, dialect } = endpoint;
  const failed = (how: string) => new EndpointError(name, "network", `the request failed (${how})`);

  async function carry(command: Command, fate: Fate): Promise<unknown> {
    // A signal that never aborts: the sender's timeout does not stop a request that has been sent.
    const { signal } = new AbortController();
    const execute = () => endpoint.send(command, signal);
    if (typeof fate === "object") {
      await fate.before?.();
      const reply = await execute();
      await fate.after?.();
      return reply;
    }
    if (fate === "refused") throw failed("refused");
    if (fate === "twice") await execute();
    if (fate !== "lost") {
      const reply = await execute();
      if (fate === "reply lost") throw failed("reset");
      return reply;
    }
    return new Promise(() => undefined);
  }

  let pending = 0;
  const sent: Command[] = [];
  const operations = operationsOf(sent);
  const made: Link = {
    name,
    dialect,
    ...(endpoint.exactReplies !== undefined && { exactReplies: endpoint.exactReplies }),
    sent,
    operations,
    get pending() {
      return pending;
    },
    fate: () => "delivered",
    send(command, signal) {
      sent.push(command);
      return new Promise((resolve, reject) => {
        const giveUp = () => reject(new EndpointError(name, "timeout", (signal.reason as Error).message));
        if (signal.aborted) return giveUp();
        signal.addEventListener("abort", giveUp, { once: true });
        pending += 1;
        carry(
          command,
          made.fate(command, () => operations().at(-1)!),
        )
          .then(resolve, reject)
          .finally(() => {
            pending -= 1;
            signal.removeEventListener("abort", giveUp);
          });
      });
    },
  };
  return made;
}

/** A promise with the function that fulfils it. */
export interface Gate<Value = void> {
  readonly passed: Promise<Value>;
  open(value: Value): void;
}

/** A gate, still closed: `passed` is pending until the test calls `open`. */
export function gate<Value = void>(): Gate<Value> {
  let open!: (value: Value) => void;
  const passed = new Promise<Value>((resolve) => {
    open = resolve;
  });
  return { passed, open };
}
