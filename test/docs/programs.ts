import { type Fence, fencesOf, pages } from "./fences.ts";

/** A file that a reader gets by pasting the blocks of a page, and nothing else. */
export interface Program {
  readonly page: string;
  /** The line of its first block. */
  readonly line: number;
  /** Its path: a folder for each page, and in it the name that the page gives, or one made of the line. */
  readonly path: string;
  readonly language: "ts" | "js";
  readonly text: string;
  /** What the page says that it prints. */
  readonly output: string | undefined;
}

/** The programs of all pages. */
export function allPrograms(): Program[] {
  return pages().flatMap((page) => programsOf(fencesOf(page)));
}

/** The programs of one page. */
export function programsOf(fences: readonly Fence[]): Program[] {
  const found: Program[] = [];
  for (const [index, fence] of fences.entries()) {
    const { page, line, language, file, text } = fence;
    if (language !== "ts" && language !== "js") continue;
    const where = `${page}:${line}`;
    const output = outputAfter(fences, index);
    const previous = found.at(-1);
    if (fence.continues) {
      if (previous?.language !== language) throw new Error(`${where}: there is nothing to continue`);
      found[found.length - 1] = { ...previous, text: previous.text + text, output };
      continue;
    }
    const name = file ?? `line-${line}.${language}`;
    const path = `${page.replace(/\.md$/, "")}/${name}`;
    if (found.some((other) => other.path === path)) throw new Error(`${where}: a second \`${file}\``);
    found.push({ page, line, path, language, text, output });
  }
  return found;
}

/** What the page says that the program prints: right after it, or after the command that runs it. */
function outputAfter(fences: readonly Fence[], program: number): string | undefined {
  const { file } = fences[program]!;
  const after = fences.slice(program + 1);
  const command = after.findIndex(({ language }) => language !== "sh") - 1;
  const output = after[command + 1];
  const runsIt = command < 0 || after[command]!.text.includes(` ${file}`);
  return output?.output && runsIt ? output.text : undefined;
}
