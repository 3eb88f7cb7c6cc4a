import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A fenced block of a page. */
export interface Fence {
  /** The page's path in the repository. */
  readonly page: string;
  /** The line of the opening fence, from 1. */
  readonly line: number;
  /** `ts`, `js`, `sh`, `console` (commands after `$`, and what they print), `text` … */
  readonly language: string;
  /** `file=path`: the block is this whole file of the page's project. */
  readonly file: string | undefined;
  /** `continues`: the block follows the previous snippet of the page, in the same file. */
  readonly continues: boolean;
  /** `output`: the block is what the last command or program above it prints. */
  readonly output: boolean;
  readonly text: string;
}

/** The .md files of the repository, without those that only tools read. */
export function pages(): string[] {
  const below = (folder: string) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) => join(folder, name));
  return [
    ...readdirSync("."),
    "lock-server/README.md",
    "local/README.md",
    ...["docs", "local/docs", "worker", "examples", "bench", "evidence", "tools"].flatMap(below),
  ]
    .filter((name) => name.endsWith(".md") && !/\bnode_modules\b|docs\/site/.test(name))
    .sort();
}

/**
 * The fenced blocks of a page.
 *
 * @throws Error for a block without a language, or with a word after it that means nothing here
 */
export function fencesOf(page: string, text: string = readFileSync(page, "utf8")): Fence[] {
  const lines = text.split("\n");
  const found: Fence[] = [];
  for (let index = 0; index < lines.length; index += 1) {
    const opening = /^\s*(`{3,})(.*)$/.exec(lines[index]!);
    if (!opening) continue;
    const [, ticks = "", info = ""] = opening;
    const end = lines.findIndex((line, at) => at > index && line.trim() === ticks);
    if (end === -1) throw new Error(`${page}:${index + 1}: the block has no end`);
    const where = `${page}:${index + 1}`;
    const meaning = meaningOf(info, where);
    // What stands behind the language is not shown to a reader.
    if (meaning.file !== undefined && !lines.slice(0, index).join("\n").includes(`\`${meaning.file}\``)) {
      throw new Error(`${where}: the text above does not say that this is \`${meaning.file}\``);
    }
    found.push({
      page,
      line: index + 1,
      ...meaning,
      text: `${lines.slice(index + 1, end).join("\n")}\n`,
    });
    index = end;
  }
  return found;
}

function meaningOf(info: string, where: string): Pick<Fence, "language" | "file" | "continues" | "output"> {
  const [language = "", ...words] = info.trim().split(/\s+/);
  if (!/^(ts|js|sh|console|sql|json|toml|yaml|dockerfile|text|mermaid)$/.test(language)) {
    throw new Error(`${where}: a block needs a language, not '${info}'`);
  }
  const file = words.find((word) => word.startsWith("file="))?.slice("file=".length);
  const rest = words.filter((word) => !word.startsWith("file="));
  if (rest.some((word) => word !== "continues" && word !== "output")) {
    throw new Error(`${where}: a block is 'file=…', 'continues' or 'output', not '${rest.join(" ")}'`);
  }
  return { language, file, continues: rest.includes("continues"), output: rest.includes("output") };
}
