import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { serverRemedies } from "../../src/cli/doctor/remedies.ts";
import { permanentErrors } from "../../src/errors/server-errors.ts";
import { fencesOf, pages } from "./fences.ts";
import { commandsOf, problemWith } from "./shell.ts";

// What can be checked of the pages without running their programs.

const text = (page: string) => readFileSync(page, "utf8");

describe("docs/contents.md", () => {
  it("leads to every page of docs/, and README.md leads to it", () => {
    const links = [...text("docs/contents.md").matchAll(/\]\(([^)#]+)/g)].map(([, path]) =>
      join("docs", path!),
    );
    const own = pages().filter((page) => page.startsWith("docs/") && page !== "docs/contents.md");
    expect(own.filter((page) => !links.includes(page))).toEqual([]);
    expect(text("README.md")).toContain("](docs/contents.md)");
  });
});

describe("links", () => {
  it.each(pages())("%s: every relative link leads to a file, and to a heading of it", (page) => {
    const prose = text(page).replace(/^(```+)[\s\S]*?^\1$/gm, "");
    const links = [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => link!);
    const broken = links.filter((link) => !/^[a-z]+:/.test(link) && !leadsSomewhere(page, link));
    expect(broken).toEqual([]);
  });
});

function leadsSomewhere(page: string, link: string): boolean {
  const [path = "", heading] = link.split("#");
  const target = path === "" ? page : join(dirname(page), path);
  if (!existsSync(target)) return false;
  return heading === undefined || anchorsOf(target).includes(heading);
}

/** The anchors that GitHub makes of a page's headings. */
function anchorsOf(page: string): string[] {
  const headings = text(page)
    .replace(/^(```+)[\s\S]*?^\1$/gm, "")
    .matchAll(/^#+ (.*)$/gm);
  return Array.from(headings, ([, heading]) =>
    heading!
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, "")
      .trim()
      .replaceAll(" ", "-"),
  );
}

/** What the rows of the table below a heading begin with. */
function rowsOf(page: string, heading: string): string[] {
  const section = text(page).split(`\n## ${heading}\n`)[1]!.split("\n## ")[0]!;
  const body = section.slice(section.indexOf("| --- |"));
  return Array.from(body.matchAll(/^\| `(\w+)` \|/gm), ([, name]) => name!).sort();
}

describe("docs/errors.md", () => {
  const union = (file: string, name: string) => {
    const body = text(file).split(`export type ${name} =`)[1]!.split(";")[0]!;
    return Array.from(body.matchAll(/"([A-Z_]+)"/g), ([, code]) => code!);
  };
  const codes = union("src/errors/errors.ts", "RedlockErrorCode");

  it("has a row for every code of RedlockErrorCode", () => {
    expect(codes.length).toBeGreaterThan(10);
    expect(rowsOf("docs/errors.md", "Errors with a code")).toEqual(codes.sort());
  });

  it("prints the table of what servers answer", () => {
    const printed = Object.entries(serverRemedies).map(([said, remedy]) => {
      const errors = said.split(", ");
      const lasts = permanentErrors.some((each) => each === errors[0]);
      return `| ${errors.map((each) => `\`${each}\``).join(", ")} | ${lasts ? "yes" : "no"} | ${remedy} |`;
    });
    const [, section] = text("docs/errors.md").split("\n## Errors that a server answers\n");
    const [table] = /(^\|.*\n)+/m.exec(section!)!;
    expect(table.trim().split("\n").slice(2)).toEqual(printed);
  });

  it("has a row for every other code of an HTTP answer", () => {
    const others = union("src/http/problem.ts", "ProblemCode").filter((code) => !codes.includes(code));
    expect(rowsOf("docs/errors.md", "HTTP answers")).toEqual(others.sort());
  });
});

describe("events", () => {
  /** The values of `type` in the declaration of an event. */
  const typesOf = (file: string, name: string) => {
    const [, body] = text(file).split(new RegExp(`^export (?:type|interface) ${name}\\b`, "m"));
    const types = body!.split(/^(?:\/\*\*|export )/m)[0]!.matchAll(/\btype:((?:\s*\|?\s*"\w+")+)/g);
    return Array.from(types, ([, union]) => union!.match(/\w+/g)!).flat();
  };

  it("of locks and endpoints all have a row in observability.md, and there alone", () => {
    const types = ["HoldEnd", "RedlockEvent"].flatMap((name) => typesOf("src/lock/events.ts", name));
    expect(types.length).toBeGreaterThan(8);
    expect(rowsOf("docs/observability.md", "Events")).toEqual(types.sort());
    expect(text("docs/options.md")).toMatch(/^\| `onEvent` .*\(observability\.md#events\)/m);
  });

  it("of runs all have a row in idempotency.md", () => {
    const types = typesOf("src/idempotency/events.ts", "IdempotencyEvent");
    expect(types.length).toBeGreaterThan(12);
    expect(rowsOf("docs/idempotency.md", "Events")).toEqual(types.sort());
  });

  it("of requests are all named in http.md", () => {
    const [row] = /^\| `onEvent` .*$/m.exec(text("docs/http.md"))!;
    const named = Array.from(row.matchAll(/`(\w+)` \(/g), ([, event]) => event!);
    expect(named.sort()).toEqual([...typesOf("src/http/options.ts", "HttpEvent"), "unguarded"].sort());
  });
});

describe("examples", () => {
  const readmes = pages().filter((page) => /^examples\/\w.*\/README\.md$/.test(page));
  const programsIn = (folder: string) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((name) => /(?<!\.d)\.(ts|js|mjs)$/.test(name))
      .map((name) => join(folder, name));

  it("each are linked from the README of their folder, or from the table of all", () => {
    const linked = ["examples/README.md", ...readmes].flatMap((page) =>
      Array.from(text(page).matchAll(/\]\(([^)#]+)/g), ([, link]) => join(dirname(page), link!)),
    );
    expect([...readmes, ...programsIn("examples")].filter((file) => !linked.includes(file))).toEqual([]);
  });

  it.each(readmes)("%s: installs what its programs import, and the commands that it names", (page) => {
    const installed = fencesOf(page)
      .filter(({ language }) => language === "sh")
      .flatMap(commandsOf)
      .filter((command) => command.startsWith("npm install"))
      .flatMap((command) => command.split(" ").slice(2));
    const needed = programsIn(dirname(page)).flatMap((program) => {
      const names = Array.from(
        text(program).matchAll(/ from "(?!node:|cloudflare:)((?:@[^/"]+\/)?[^./"][^/"]*)/g),
        ([, name]) => name!,
      );
      const needsTypes = program.endsWith(".ts") && text(program).includes("process.env");
      return [...names, ...(needsTypes ? ["@types/node"] : [])];
    });
    const commands = Array.from(text(page).matchAll(/(?:^|`)npx (\S+)/gm), ([, name]) => name!);
    const packages = needed.map((name) => (name === "aws-lambda" ? "@types/aws-lambda" : name));
    expect(needed).toContain("redlock-edge");
    expect([...packages, ...commands].filter((name) => !installed.includes(name))).toEqual([]);
  });
});

describe("shell commands", () => {
  const blocks = pages().flatMap((page) =>
    fencesOf(page).filter(({ language }) => /^(sh|console)$/.test(language)),
  );

  it("are commands that exist", async () => {
    const commands = blocks.flatMap((block) => commandsOf(block).map((command) => ({ ...block, command })));
    expect(commands.length).toBeGreaterThan(20);
    const problems = await Promise.all(
      commands.map(async ({ page, line, command }) => [
        page,
        line,
        command,
        await problemWith(command, page),
      ]),
    );
    expect(problems.filter(([, , , problem]) => problem !== undefined)).toEqual([]);
  });
});
