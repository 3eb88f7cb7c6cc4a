/**
 * Messages as server-sent events. The next one is asked for only when the client has read the one before: a client that
 * does not read costs one message, however long it stays.
 *
 * @param next Resolves with the next message; with undefined, the stream ends.
 * @param onEnd Called once, however it ends.
 */
export function messageStream(
  next: () => Promise<object | undefined>,
  onEnd: () => void,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let open = true;
  const end = () => {
    if (open) onEnd();
    open = false;
  };
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const message = await next();
        // The client may have left meanwhile.
        if (!open) return;
        if (message) {
          controller.enqueue(encoder.encode(`data: ${JSON.stringify(message)}\n\n`));
          return;
        }
        end();
        controller.close();
      },
      cancel: end,
    },
    { highWaterMark: 0 },
  );
}
