import { createInterface } from "node:readline/promises";

/** A terminal, or what stands for one in a test. */
export interface Terminal {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
}

/** Asks at a terminal. Ctrl-C, the end of the input and `stop` are an empty answer. */
export async function askAt(
  { input, output }: Terminal,
  question: string,
  stop: AbortSignal,
): Promise<string> {
  const terminal = createInterface({ input, output, terminal: true });
  const cancel = new AbortController();
  terminal.once("SIGINT", () => cancel.abort());
  terminal.once("close", () => cancel.abort());
  try {
    return await terminal.question(question, { signal: AbortSignal.any([cancel.signal, stop]) });
  } catch {
    // The next line must not begin behind the question.
    output.write("\n");
    return "";
  } finally {
    terminal.close();
  }
}
