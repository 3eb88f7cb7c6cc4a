/** The extensions of a lock that may still be executed, by endpoint. Executed late, one would shorten a longer one there. */
export class OpenExtensions {
  /** The lowest ttl of those that have failed. Nobody learns whether they are executed, so it is never forgotten. */
  readonly #failed = new Map<string, number>();
  readonly #pending = new Map<string, number[]>();

  /** The lowest ttl that may still be executed at an endpoint. Infinity: there is none. */
  lowest(name: string): number {
    return Math.min(this.#failed.get(name) ?? Infinity, ...(this.#pending.get(name) ?? []));
  }

  /** Sends one to an endpoint. It is remembered until an answer proves that it has been executed. */
  async send<Reply>(name: string, ttl: number, request: () => Promise<Reply>): Promise<Reply> {
    const pending = this.#pending.get(name) ?? [];
    this.#pending.set(name, pending);
    pending.push(ttl);
    try {
      return await request();
    } catch (error) {
      this.#failed.set(name, Math.min(this.#failed.get(name) ?? ttl, ttl));
      throw error;
    } finally {
      pending.splice(pending.indexOf(ttl), 1);
    }
  }
}
