/** Why `fetch` failed: Node puts the code (ECONNREFUSED) into the cause. With what is most often behind that code. */
export function networkReason(error: unknown): string {
  const { message, cause } = error as { message?: string; cause?: { code?: string; name?: string } };
  // Where a program has loaded undici 7, the error of its parser has no code.
  const isParser = cause?.name === "HTTPParserError";
  const reason = `${cause?.code ?? (isParser ? cause.name : message)}`;
  const hint = /REFUSED/.test(reason)
    ? ": nothing listens"
    : /NOTFOUND|EAI_/.test(reason)
      ? ": no such host"
      : /WRONG_VERSION/.test(reason)
        ? ": no TLS there"
        : /SOCKET|HPE_|Parser|RESET/.test(reason)
          ? ": broken off, or no HTTP"
          : "";
  return `the request failed (${reason})${hint}`;
}

/**
 * What is wrong with an answer that has no reply of Redis in it.
 *
 * @param said the error in it, empty where there is none
 * @param status unknown behind a client of an SDK
 */
export function answerReason(said: string, status = 200): string {
  // A REST API is never "not found", whatever the answer says.
  if (said && status !== 404) return said;
  // Others, such as 413, 429 and 502, are those of a gateway that has a REST API behind it.
  return status < 405 ? "no answer of Upstash's REST API: is the URL right?" : "no usable reply";
}
