import { createHash } from "node:crypto";

/** What keys are called in the picture: by their resources, as calls and holds name them. */
export class Names {
  /** By its hash, which is all that endpoints see: the key of a run. */
  readonly #runs = new Map<string, string>();

  /** A call names a key of runs, in the scope `sim`. */
  learn(key: string): void {
    const hash = createHash("sha256")
      .update(JSON.stringify(["sim", key]))
      .digest("hex");
    this.#runs.set(hash, key);
  }

  /** `redlock:lock:{a}` → `a`, `redlock:slot:2:{pool}` → `pool#2`; what no key looks like stays as it is. */
  of(key: string): string {
    const parts = /^redlock:([a-z-]+):(?:(\d+):)?\{([^}]*)\}(?::(.*))?$/.exec(key);
    if (!parts) return key;
    const [, kind, slot, tag = "", rest] = parts;
    const resource = this.#runs.get(tag) ?? rest ?? tag;
    if (kind === "tries") return `tries of ${resource}`;
    return slot === undefined ? resource : `${resource}#${slot}`;
  }
}
