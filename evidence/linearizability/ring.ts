import type { Operation } from "./checker.ts";

/** An operation in the search. */
export interface Call<Input, Output> {
  readonly operation: Operation<Input, Output>;
  /** Its number among the calls that must be placed, or its bit among those that need not. */
  readonly index: number;
  readonly bit: bigint;
  /** Equal for calls that ask for the same. */
  readonly request: string;
  /** Its links in the ring: its invocation, and its return if it must be placed by then. */
  readonly marks: readonly Mark<Input, Output>[];
}

/** A link of a ring in order of time. The ring's own link belongs to no call. */
export interface Mark<Input, Output> {
  readonly time: number;
  readonly kind: "invocation" | "return" | "ring";
  readonly call: Call<Input, Output> | undefined;
  previous: Mark<Input, Output>;
  next: Mark<Input, Output>;
}

/** Whether an operation is optional: nothing ever depends on its having been placed. */
export function mayBeLeftOut({ output, returned }: Operation<unknown, unknown>): boolean {
  return output === undefined && returned === Infinity;
}

/** The invocations and, of calls that must be placed, the returns, in order of time, numbered by it. */
export function ring<Input, Output>(operations: readonly Operation<Input, Output>[]): Mark<Input, Output> {
  const head = { time: Infinity, kind: "ring", call: undefined } as unknown as Mark<Input, Output>;
  head.previous = head;
  head.next = head;
  const marks = [...operations]
    .sort((a, b) => a.invoked - b.invoked)
    .flatMap((operation, index) => {
      const own: Mark<Input, Output>[] = [];
      const request = JSON.stringify(operation.input);
      const call = { operation, index, bit: 1n << BigInt(index), request, marks: own };
      own.push({ time: operation.invoked, kind: "invocation", call, previous: head, next: head });
      if (!mayBeLeftOut(operation)) {
        own.push({ time: operation.returned, kind: "return", call, previous: head, next: head });
      }
      return own;
    });
  // At a tie invocations come first, so that the two operations count as concurrent.
  marks.sort((a, b) =>
    a.time === b.time ? Number(a.kind === "return") - Number(b.kind === "return") : a.time - b.time,
  );
  for (const mark of marks) {
    mark.previous = head.previous;
    relink(mark);
  }
  return head;
}

export function unlink(mark: Mark<unknown, unknown>): void {
  mark.previous.next = mark.next;
  mark.next.previous = mark.previous;
}

export function relink(mark: Mark<unknown, unknown>): void {
  mark.previous.next = mark;
  mark.next.previous = mark;
}

/** The calls of which one has to come next: those invoked before the first return. */
export function candidates<Input, Output>(required: Mark<Input, Output>): Call<Input, Output>[] {
  const calls: Call<Input, Output>[] = [];
  for (let mark = required.next; mark.kind === "invocation"; mark = mark.next) calls.push(mark.call!);
  return calls;
}
