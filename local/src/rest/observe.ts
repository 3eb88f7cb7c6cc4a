import type { Command, Outcome } from "./backend.ts";
import type { OnCommand } from "./http/command-runner.ts";
import type { Answer } from "./http/inject-faults.ts";
import { commandsIn } from "./http/request.ts";

/** Who sends a request. */
export interface Peer {
  /** Address and port of the connection's other end. */
  readonly address: string;
  readonly port: number;
  /** The header `User-Agent`. */
  readonly agent: string;
}

/** A command that was executed. */
export interface Executed extends Outcome {
  readonly command: Command;
}

/** A request from its arrival to its end. */
export interface Exchange {
  readonly peer: Peer;
  /** When it arrived, in ms since 1970. */
  readonly at: number;
  readonly ms: number;
  readonly path: string;
  /** What was sent; empty if it cannot be read. */
  readonly commands: readonly Command[];
  /** Its commands in the order of their execution; empty if it was lost or refused. */
  readonly executed: readonly Executed[];
  /** The HTTP status; undefined: there was no answer. */
  readonly status: number | undefined;
}

/** Looks on at the requests of one endpoint. */
export interface Observer {
  /** A command was executed; its reply may still be delayed or lost. */
  executed(peer: Peer, command: Executed): void;
  ended(exchange: Exchange): void;
}

/** Answers a request, and shows it to an observer. */
export async function observed(
  observer: Observer,
  request: Request,
  from: Pick<Peer, "address" | "port">,
  answer: (onCommand: OnCommand) => Promise<Answer>,
): Promise<Answer> {
  const at = Date.now();
  const peer = { ...from, agent: request.headers.get("user-agent") ?? "" };
  const commands = await commandsIn(request);
  const executed: Executed[] = [];
  const answered = await answer((command, outcome) => {
    const one = { command, ...outcome };
    executed.push(one);
    observer.executed(peer, one);
  });
  const status = answered instanceof Response ? answered.status : undefined;
  const { pathname: path } = new URL(request.url);
  observer.ended({ peer, at, ms: Date.now() - at, path, commands, executed, status });
  return answered;
}
