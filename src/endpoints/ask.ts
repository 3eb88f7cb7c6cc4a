import type { CallSignal } from "./call-signal.ts";
import type { Command, Endpoint } from "./endpoint.ts";
import { type RequestHook, RequestWatch } from "./request-watch.ts";
import { sendThrough } from "./transport.ts";

/** What is asked of one endpoint: one command or several, until nobody waits any longer. */
export interface Ask {
  readonly endpoint: Endpoint;
  /** Whether the endpoint may execute it: false while it waits for room, and if it was dropped there. */
  isSent: boolean;
  /** Whether its script is sent as text in any case, because a NOSCRIPT may get lost. */
  sendsText: boolean;
  /** Whether nobody waits any longer. */
  readonly isGivenUp: boolean;
  /** Sends one command. */
  send(command: Command): Promise<unknown>;
}

/** How long to wait, and who hears of requests. */
export interface Waiting {
  readonly signal: CallSignal;
  /** Called for every request that has ended. */
  readonly onRequest?: RequestHook | undefined;
}

/** Asks an endpoint outside of a round. */
export function askOf(endpoint: Endpoint, signal: CallSignal): Ask {
  const ask: Ask = {
    endpoint,
    isSent: false,
    sendsText: false,
    get isGivenUp() {
      return signal.aborted;
    },
    send: (command) => sendFor(ask, { signal }, command),
  };
  return ask;
}

/** Sends one command, and notes when it leaves. */
export function sendFor(ask: Ask, { signal, onRequest }: Waiting, command: Command): Promise<unknown> {
  const { endpoint } = ask;
  const watch = onRequest && new RequestWatch(endpoint.name, signal.now, onRequest);
  const reply = sendThrough(endpoint, command, signal, (commands) => {
    ask.isSent = true;
    if (commands > 0) watch?.begin(commands);
    return watch !== undefined;
  });
  void watch?.endWith(reply);
  return reply;
}
