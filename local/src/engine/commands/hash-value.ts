/** The fields of a hash, some of which expire. All strings are byte strings. */
export class Hash extends Map<string, string> {
  readonly #deadlines = new Map<string, number>();

  /** Sets a field, which then does not expire. */
  override set(field: string, value: string): this {
    this.#deadlines.delete(field);
    return super.set(field, value);
  }

  /** Changes the value of a field, which expires when it did. */
  change(field: string, value: string): void {
    super.set(field, value);
  }

  override delete(field: string): boolean {
    this.#deadlines.delete(field);
    return super.delete(field);
  }

  /** When a field expires, in ms since 1970; undefined: never. */
  deadline(field: string): number | undefined {
    return this.#deadlines.get(field);
  }

  /** Changes when an existing field expires; undefined: never. */
  expire(field: string, deadline: number | undefined): void {
    if (deadline === undefined) this.#deadlines.delete(field);
    else this.#deadlines.set(field, deadline);
  }

  /** Deletes the fields that have expired, and returns whether there were any. */
  sweep(now: number): boolean {
    let any = false;
    for (const [field, deadline] of this.#deadlines) {
      if (deadline > now) continue;
      this.delete(field);
      any = true;
    }
    return any;
  }

  /** A hash with the same fields, which expire when these do. */
  copy(): Hash {
    const copy = new Hash();
    for (const [field, value] of this) {
      copy.set(field, value);
      copy.expire(field, this.deadline(field));
    }
    return copy;
  }
}
