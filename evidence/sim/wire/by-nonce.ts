import { entryOf } from "../field.ts";

/** What is known of each nonce on each endpoint: a record is created when it is first asked for. */
export class ByNonce<Server extends object, Trail> {
  readonly #trails = new Map<string, Map<Server, Trail>>();

  /** The record of a nonce on an endpoint. */
  of(nonce: string, server: Server, create: () => Trail): Trail {
    return entryOf(
      entryOf(this.#trails, nonce, () => new Map()),
      server,
      create,
    );
  }

  /** The record of a nonce on an endpoint, if there is one. */
  find(nonce: string, server: Server): Trail | undefined {
    return this.#trails.get(nonce)?.get(server);
  }

  /** The records of a nonce on all endpoints. */
  all(nonce: string): Trail[] {
    return [...(this.#trails.get(nonce)?.values() ?? [])];
  }

  /** On how many endpoints something is true of a nonce. */
  count(nonce: string, isTrue: (trail: Trail) => boolean): number {
    return this.all(nonce).filter(isTrue).length;
  }

  /** All records, in the order in which their nonces were first seen. */
  *[Symbol.iterator](): Generator<{ nonce: string; server: Server; trail: Trail }> {
    for (const [nonce, trails] of this.#trails) {
      for (const [server, trail] of trails) yield { nonce, server, trail };
    }
  }
}
