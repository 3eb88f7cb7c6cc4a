import type { Event } from "./options.ts";

// Rare events, each of which costs one deviation and may occur at any step, once.

/** The call of a client is aborted. */
export function abort(client: number): Event {
  return {
    name: `abort:p${client}`,
    isPossible: ({ processes }) =>
      processes[client]!.abortable?.signal.aborted === false && !processes[client]!.frozen,
    run({ processes }) {
      const { abortable } = processes[client]!;
      processes[client]!.receive("abort");
      abortable?.abort(new Error("given up"));
    },
  };
}

/** A client stands still, with its monotonic clock, until the schedule lets it go on. */
export function freeze(client: number): Event {
  return { name: `freeze:p${client}`, run: ({ processes }) => processes[client]!.freeze() };
}

/** The wall clock of a client is set by so many ms. */
export function setClock(client: number, ms: number): Event {
  return {
    name: `clock:p${client}`,
    isPossible: ({ processes }) => !processes[client]!.frozen,
    run: ({ processes }) => processes[client]!.setClock(ms),
  };
}

/**
 * An endpoint loses its memory, and stays away for so many ms: for longer than all that it had granted is valid, which is
 * the assumption "absence after memory loss".
 */
export function forget(server: number, ms: number): Event {
  return {
    name: `forget:r${server}`,
    run({ servers, events, now }) {
      servers[server]!.forget();
      Object.assign(servers[server]!, { awayUntil: now + ms, forgotAt: now });
      events.add("forgotten");
    },
  };
}
