import { VirtualTime } from "../../local/src/memory/virtual-time.ts";

/** The outcome of a call. */
export type Outcome<Value> = { readonly value: Value } | { readonly error: unknown };

/** Virtual time that tells how calls end. It begins at a present date, as clocks of the engine and fences have them. */
export class FuzzTime extends VirtualTime {
  constructor() {
    super({ start: 1_763_714_567_890 });
  }

  /** Makes a call, and lets time pass until it has settled. A call that throws instead of rejecting has settled, too. */
  outcomeOf<Value>(call: () => Promise<Value>): Promise<Outcome<Value>> {
    const outcome = (async () => call())().then(
      (value) => ({ value }),
      (error: unknown) => ({ error }),
    );
    return this.settle(outcome);
  }
}
