export { eventOf } from "../../lock-server/src/channels.ts";

/** A stream of server-sent events that has begun. */
export interface EventStream {
  /** Its bytes. Each chunk is one event. To cancel it ends the stream. */
  readonly body: ReadableStream<Uint8Array>;
  /** Sends an event. Does nothing after the end. */
  send(event: Uint8Array): void;
  /** Ends it in order, or with an error if there is one. */
  end(error?: unknown): void;
}

/** Bytes that may wait for a client that does not read: as much as Redis keeps for a subscriber. */
const mostWaiting = 32 * 1024 * 1024;

/**
 * Begins a stream. `onEnd` is called once: when the client cancels it, when it is ended here, or when the client has not
 * read the last 32 MB.
 */
export function eventStream(onEnd: () => void): EventStream {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  function finish(how: (open: ReadableStreamDefaultController<Uint8Array>) => void): void {
    const open = controller;
    controller = undefined;
    if (!open) return;
    how(open);
    onEnd();
  }
  const body = new ReadableStream<Uint8Array>(
    {
      start(started) {
        controller = started;
      },
      cancel: () => finish(() => undefined),
    },
    { highWaterMark: mostWaiting, size: (event) => event.length },
  );
  return {
    body,
    send(event) {
      controller?.enqueue(event);
      if (controller && controller.desiredSize! < 0) {
        finish((open) => open.error(new Error("the client does not read its events")));
      }
    },
    end: (error) => finish((open) => (error === undefined ? open.close() : open.error(error))),
  };
}

/** Whether an event is a message, and no confirmation. */
export function isMessage(event: Uint8Array): boolean {
  return !/^data: p?subscribe,/.test(String.fromCharCode(...event.subarray(0, 17)));
}
