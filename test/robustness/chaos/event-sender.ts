import type { Fleet } from "./fleet.ts";

/** Sends every event several times, to several clients at once, and again where a client died with it. */
export interface Postman {
  readonly events: readonly string[];
  readonly deliveries: number;
  /** Sends a new event, unless too much is under way: senders that pile up would be all that there is to see. */
  post(): void;
  delivered(delivery: number): void;
  /** A client was killed before it had delivered these. */
  lost(deliveries: readonly number[]): void;
  /** Resolves when everything has been delivered. */
  done(): Promise<void>;
}

/** Deliveries under way at a time. */
const most = 6;

/** `fleet` is asked for late: the clients are started after the postman. */
export function createPostman(fleet: () => Fleet, random: () => number): Postman {
  const events: string[] = [];
  const pending = new Map<number, string>();
  let deliveries = 0;
  let emptied: (() => void) | undefined;

  /** The next tick: nothing is sent in the middle of a client's end. */
  function send(delivery: number, event: string): void {
    setImmediate(() => fleet().deliver(Math.floor(random() * fleet().size), delivery, event));
  }

  return {
    events,
    get deliveries() {
      return deliveries;
    },
    post() {
      if (pending.size >= most) return;
      const event = `event-${events.length + 1}`;
      events.push(event);
      const copies = 2 + Math.floor(random() * 3);
      for (let copy = 0; copy < copies; copy++) {
        deliveries += 1;
        pending.set(deliveries, event);
        send(deliveries, event);
      }
    },
    delivered(delivery) {
      pending.delete(delivery);
      if (pending.size === 0) emptied?.();
    },
    lost(gone) {
      for (const delivery of gone) {
        // Its last word may have been that it has delivered, and arrive after its end.
        const event = pending.get(delivery);
        if (event !== undefined) send(delivery, event);
      }
    },
    done() {
      if (pending.size === 0) return Promise.resolve();
      return new Promise((resolve) => {
        emptied = resolve;
      });
    },
  };
}
