import { parseKey } from "../../src/stored/index.ts";
import { hashOf } from "./run-histories.ts";

/** What keys are called in the picture: by their resources, as calls and holds name them. */
export class Names {
  /** By its hash, which is all that endpoints see: the key of a run. */
  readonly #runs = new Map<string, string>();

  /** A call names a key of runs, in the scope `sim`. */
  learn(key: string): void {
    this.#runs.set(hashOf(key), key);
  }

  /** `redlock:lock:{a}` → `a`, `redlock:slot:2:{pool}` → `pool#2`; what no key looks like stays as it is. */
  of(key: string): string {
    const parts = parseKey(key);
    if (!parts) return key;
    const { kind, slot } = parts;
    const resource = this.#runs.get(parts.resource) ?? parts.resource;
    if (kind === "tries") return `tries of ${resource}`;
    return slot === undefined ? resource : `${resource}#${slot}`;
  }
}
