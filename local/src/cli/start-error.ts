/** An error of Node's when something is started: `listen EADDRINUSE …`. */
type SystemError = NodeJS.ErrnoException & { readonly address?: string; readonly port?: number };

/**
 * What did not start, and what to do; other errors as they are.
 *
 * @param option the option that sets the port
 */
export function startError(error: unknown, option: "--port" | "--page-port"): unknown {
  const text = textFor(error as SystemError, option);
  return text === undefined ? error : new Error(text, { cause: error });
}

function textFor({ code, syscall, path, address, port }: SystemError, option: string): string | undefined {
  if (code === "EADDRINUSE") {
    return `port ${port} of ${address} is in use, perhaps by another redis-rest-local: stop it, choose another port with ${option}, or leave ${option} out for a free one`;
  }
  if (code === "EACCES" && syscall === "listen") {
    return `this user may not listen on port ${port}: choose one above 1023 with ${option}`;
  }
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND" || code === "EAI_AGAIN") {
    return `--host is not an address of this machine (${code}): leave it out for 127.0.0.1, or take 0.0.0.0 for all addresses`;
  }
  if (syscall === "mkdtemp") {
    return `no folder can be made for redis-server's files (${code}, ${path}): set TMPDIR to a folder that may be written, or take --engine embedded`;
  }
  return undefined;
}
