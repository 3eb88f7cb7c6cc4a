import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { askAt } from "../../../src/cli/environment.ts";

/** Asks, types something once the question is there, and returns the answer. */
async function answerTo(type: (input: PassThrough) => void): Promise<string> {
  const [input, output] = [new PassThrough(), new PassThrough()];
  let shown = "";
  output.on("data", (bytes: Buffer) => {
    shown += bytes;
  });
  const answer = askAt({ input, output }, "Free it? [y/N] ");
  await expect.poll(() => shown).toContain("Free it? [y/N] ");
  type(input);
  return answer;
}

test.each([
  ["an answer", "yes", (input: PassThrough) => input.write("yes\r")],
  ["nothing", "", (input: PassThrough) => input.write("\r")],
  ["Ctrl-C", "", (input: PassThrough) => input.write("y\u0003")],
  ["Ctrl-D", "", (input: PassThrough) => input.write("\u0004")],
  ["the end of the input", "", (input: PassThrough) => input.end()],
])("%s is the answer %j", async (_, expected, type) => {
  expect(await answerTo((input) => void type(input))).toBe(expected);
});
