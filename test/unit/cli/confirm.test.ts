import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { askAt } from "../../../src/cli/environment.ts";

/** Asks, types something once the question is there, and returns the answer. */
async function answerTo(type: (input: PassThrough, stop: AbortController) => void): Promise<string> {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const stop = new AbortController();
  let shown = "";
  output.on("data", (bytes: Buffer) => {
    shown += bytes;
  });
  const answer = askAt({ input, output }, "Free it? [y/N] ", stop.signal);
  await expect.poll(() => shown).toContain("Free it? [y/N] ");
  type(input, stop);
  return answer;
}

test.each([
  ["an answer", "yes", (input: PassThrough) => input.write("yes\r")],
  ["nothing", "", (input: PassThrough) => input.write("\r")],
  ["Ctrl-C", "", (input: PassThrough) => input.write("y\u0003")],
  ["Ctrl-D", "", (input: PassThrough) => input.write("\u0004")],
  ["the end of the input", "", (input: PassThrough) => input.end()],
  ["a signal to stop", "", (_: PassThrough, stop: AbortController) => stop.abort()],
])("%s is the answer %j", async (_, expected, type) => {
  expect(await answerTo((input, stop) => void type(input, stop))).toBe(expected);
});
