import { existsSync, readFileSync } from "node:fs";
import { help as localHelp } from "../../local/src/cli/options.ts";
import { runCommand } from "../../src/cli/run.ts";
import { type Fence, fencesOf } from "./fences.ts";

/** Commands that no test runs, and why. */
const notRun: readonly (readonly [command: RegExp, why: string])[] = [
  [
    /^npx wrangler (deploy|secret put \w+|dev( src\/index\.ts --compatibility-date [-\d]+)?|(d1|queues) create [\w-]+|d1 execute \w+ --local --file schema\.sql)$/,
    "test/examples runs the Workers in workerd, with D1, queues and Durable Objects",
  ],
  [
    /^npx wrangler (d1 create redlock-edge|d1 execute redlock-edge --remote --(file worker\/schema\.sql|command .*)|secret bulk \.dev\.vars)$/,
    "test/worker runs the Worker in workerd, with its tables in D1",
  ],
  [
    /^npx esbuild (payments|receive|ship)\.ts( --[a-z]+([=:][\w./@-]+)?)+$/,
    "test/examples bundles them for the same platform and format",
  ],
  [/^npm install( --save-dev)?( +[@a-z0-9./-]+)+$/, "the tests install the packed package instead"],
  [
    /^docker (build|run)( --?[\w-]+)*( [\w.:-]+)+$/,
    "test/docs/walk.long.test.ts runs the command of the image",
  ],
  [/^stripe listen --forward-to localhost:8787\/webhooks\/stripe$/, "it needs an account at Stripe"],
  [/^npx vitest run( \S+)+( -t "[^"]+")?$/, "it would run tests in tests"],
];

const scripts = (JSON.parse(readFileSync("package.json", "utf8")) as { scripts: Record<string, string> })
  .scripts;

/** The commands of a block of `sh` or `console`, one by one: without comments, redirections and the words of `if`. */
export function commandsOf({ language, text }: Pick<Fence, "language" | "text">): string[] {
  const lines = text.replace(/ *\\\n */g, " ").split("\n");
  const typed =
    language === "console"
      ? lines.filter((line) => line.startsWith("$ ")).map((line) => line.slice(2))
      : lines.map((line) => line.replace(/(^|\s)#.*$/, ""));
  return typed
    .flatMap((line) => line.split(/;|\s(?:&&|\|\||&|\|)(?=\s|$)/))
    .map((command) => command.replace(/^\s*(if|then|else|do)\s/, "").replace(/\s\d?>\S+/g, ""))
    .map((command) => command.trim())
    .filter((command) => !/^(|fi|do|done)$/.test(command));
}

/** Why a reader of the page cannot run this command, as far as that can be known without running it. */
export async function problemWith(command: string, page: string): Promise<string | undefined> {
  if (notRun.some(([pattern]) => pattern.test(command))) return undefined;
  const [program = "", ...args] = command.split(/\s+/);
  if (program === "npm") return problemWithNpm(args);
  if (command.startsWith("npx redlock-edge ")) return problemWithCommand(args.slice(1));
  if (/^npx redis-rest-local\b/.test(command)) return unknownOption(args, localHelp);
  if (program === "node") return problemWithNode(args, page);
  // Run by the test of the page that has them.
  if (/^(curl|mkdir|cd|echo|openssl|sed|for|\w+=.*)$/.test(program)) return undefined;
  return "not known: add it to the tests of the page, or to the list of commands that no test runs";
}

function problemWithNpm([command = "", name = ""]: readonly string[]): string | undefined {
  if (/^(ci|test|init|pkg)$/.test(command)) return undefined;
  return command === "run" && name in scripts ? undefined : "no such script";
}

/** The command must have a help text, and the text must have every option. */
async function problemWithCommand([name = "", ...args]: readonly string[]): Promise<string | undefined> {
  if (name === "--help" || name === "--version") return undefined;
  let help = "";
  const print = (line: string) => {
    help += `${line}\n`;
  };
  const environment = { out: print, warn: print, width: Infinity, version: () => Promise.resolve("") };
  const code = await runCommand([name, "--help"], environment as Parameters<typeof runCommand>[1]);
  if (code !== 0 || !help.includes(`redlock-edge ${name} `)) return `there is no command ${name}`;
  return unknownOption(args, help);
}

function unknownOption(args: readonly string[], help: string): string | undefined {
  const options = args.filter((arg) => arg.startsWith("--")).map((arg) => arg.split("=")[0]!);
  const unknown = options.find((option) => !help.split(/[\s,[\]]+/).includes(option));
  return unknown && `there is no option ${unknown}`;
}

function problemWithNode(args: readonly string[], page: string): string | undefined {
  const file = args.find((arg) => !arg.startsWith("-")) ?? "";
  const pasted = fencesOf(page).some((fence) => fence.file === file);
  return pasted || existsSync(file) ? undefined : "no such file";
}
