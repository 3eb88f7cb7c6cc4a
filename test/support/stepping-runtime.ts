import { VirtualTime } from "../../local/src/memory/virtual-time.ts";

/** Virtual time without jitter and rounding: the same number each time, and tokens that count. */
export class SteppingRuntime extends VirtualTime {
  /** Share of its delay by which every timer fires early, from 0 to 1. */
  early = 0;
  #count = 0;

  override now = (): number => 1_700_000_000_000 + this.elapsed + this.wallOffset;

  override random = (): number => 0.5;

  override randomBytes = (bytes: Uint8Array): void => {
    this.#count += 1;
    bytes.fill(this.#count);
  };

  override timer = (ms: number, callback: () => void): (() => void) =>
    this.at(this.elapsed + ms * (1 - this.early), callback);
}

/** A new {@link SteppingRuntime}. */
export function steppingRuntime(): SteppingRuntime {
  return new SteppingRuntime();
}
