/** Reads a stream of server-sent events, one event after another. */
export interface EventReader {
  /** The next event, without the empty line at its end; undefined when the stream has ended. Rejects if it breaks. */
  next(): Promise<string | undefined>;
  cancel(): Promise<void>;
}

/** Reads the body of a response; null, as `fetch` types it, is no stream. */
export function readEvents(body: ReadableStream<Uint8Array> | null): EventReader {
  if (!body) throw new Error("the response has no body");
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  return {
    async next() {
      for (;;) {
        const end = text.indexOf("\n\n");
        if (end >= 0) {
          const event = text.slice(0, end);
          text = text.slice(end + 2);
          return event;
        }
        const { value, done } = await reader.read();
        if (done) return undefined;
        text += decoder.decode(value, { stream: true });
      }
    },
    cancel: () => reader.cancel(),
  };
}
