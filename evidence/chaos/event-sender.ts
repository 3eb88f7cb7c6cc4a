import type { Draw } from "../sim/draw.ts";
import type { Fleet } from "./fleet.ts";

/** Sends every event several times, to several clients at once, and again when a client dies with it. */
export interface EventSender {
  readonly events: readonly string[];
  /** Sends a new event, unless many deliveries are under way: a backlog would leave no room for other work. */
  sendNext(): void;
  delivered(delivery: number): void;
  /** A client was killed before it had completed these deliveries. */
  lost(deliveries: readonly number[]): void;
  /** Resolves when all deliveries are completed. */
  done(): Promise<void>;
}

/** Deliveries under way at a time. */
const most = 6;

/** @param fleet called late: the clients are started after the sender */
export function createEventSender(fleet: () => Fleet, draw: Draw): EventSender {
  const events: string[] = [];
  const pending = new Map<number, string>();
  let deliveries = 0;
  let emptied: (() => void) | undefined;

  /** In the next tick: nothing is sent while a client is being removed. */
  function send(delivery: number, event: string): void {
    setImmediate(() => fleet().deliver(draw.integer(0, fleet().size - 1), delivery, event));
  }

  return {
    events,
    sendNext() {
      if (pending.size >= most) return;
      const event = `event-${events.length + 1}`;
      events.push(event);
      const copies = draw.integer(2, 4);
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
    lost(lost) {
      for (const delivery of lost) {
        // The client's last message, that it has delivered, may arrive after its end.
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
