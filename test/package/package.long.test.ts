import { execFile, spawnSync } from "node:child_process";
import { cpSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { promisify, stripVTControlCharacters } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { start } from "../../local/src/index.ts";
import { installPacked, type Packages, type Project } from "../support/packed.ts";

// The packages as users install them: built, packed, and installed into an empty folder.

let folder: string;
let installed: string;
let packed: Packages;
let local: string;
let server: string;
let run: Project["run"];

beforeAll(async () => {
  const project = await installPacked();
  ({ folder, installed, run } = project);
  packed = project.packed;
  server = join(folder, "node_modules/redlock-edge-server");
  local = join(folder, "node_modules/redis-rest-local");
}, 120_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Adds a package of this repository's to the user's project. */
const link = (name: string) =>
  symlinkSync(join(process.cwd(), "node_modules", name), join(folder, "node_modules", name));

/** The text of an export and of every chunk that it loads. */
function codeOf(entry: string, dist = join(installed, "dist")): string {
  const seen = new Set<string>();
  const read = (path: string): string => {
    if (seen.has(path)) return "";
    seen.add(path);
    const text = readFileSync(join(dist, path), "utf8");
    const imports = [...text.matchAll(/from ?"(\.[^"]+)"/g)].map(([, target]) => join(path, "..", target!));
    return text + imports.map(read).join("");
  };
  return read(entry);
}

/** Fails unless the compiler accepts these files and the types that they import, under each module resolution. */
function checkTypes(...names: string[]): void {
  const common = ["--noEmit", "--strict", "--target", "es2022", "--lib", "es2022,dom"];
  for (const [tsc, ...module] of [
    ["@typescript/native/bin/tsc", "--module", "nodenext"],
    ["@typescript/native/bin/tsc", "--module", "esnext", "--moduleResolution", "bundler"],
    // TypeScript 7 has it no more.
    [
      "typescript/lib/tsc.js",
      "--moduleResolution",
      "node10",
      "--module",
      "commonjs",
      "--ignoreDeprecations",
      "6.0",
    ],
  ] as const) {
    run(process.execPath, join(process.cwd(), "node_modules", tsc), ...common, ...module, ...names);
  }
}

/** The scripts of a package, without the hashes of chunks. */
function scriptsOf(files: readonly string[]): string[] {
  const scripts = files.filter((path) => path.endsWith(".js"));
  return [...new Set(scripts.map((path) => path.replace(/-[A-Z0-9]{8}\.js$/, "-*.js")))];
}

const isBuilt = (path: string) => /^dist\/.*\.(js|js\.map|d\.ts)$/.test(path);

describe("the packed packages", () => {
  it("have no script that npm runs, or warns of, where they are installed", () => {
    for (const at of [installed, server, local]) {
      const { scripts } = JSON.parse(readFileSync(join(at, "package.json"), "utf8"));
      expect(Object.keys(scripts).filter((name) => /install|prepare|prepublish/.test(name))).toEqual([]);
    }
  });

  it("contain the build with types, and nothing else", () => {
    for (const { files } of Object.values(packed)) {
      const others = files.filter((path) => !isBuilt(path) && path !== "dist/LICENSES.txt");
      expect(others).toEqual(["LICENSE", "README.md", "package.json"]);
    }
    expect(scriptsOf(packed.redisRestLocal.files)).toEqual([
      "dist/chunk-*.js",
      "dist/cli/main.js",
      "dist/cli/page.js",
      "dist/index.js",
      "dist/memory/index.js",
      "dist/server-*.js",
    ]);
  });

  it("can be read and debugged: with comments, or with maps that have the sources", () => {
    for (const file of [join(installed, "dist/lock/lock.js"), join(server, "dist/lock-server.js")])
      expect(readFileSync(file, "utf8")).toMatch(/^ +\/\/ \w/m);
    for (const path of packed.redisRestLocal.files.filter((name) => name.endsWith(".js"))) {
      const { sources, sourcesContent } = JSON.parse(readFileSync(join(local, `${path}.map`), "utf8"));
      const isOwn = (_: unknown, index: number) => !sources[index].includes("node_modules/");
      expect(sourcesContent.filter(isOwn), path).not.toContain(null);
    }
  });

  it("contain the licence of each package in the bundles", () => {
    const sources = packed.redisRestLocal.files
      .filter((name) => name.endsWith(".js.map"))
      .flatMap((name) => JSON.parse(readFileSync(join(local, name), "utf8")).sources as string[]);
    const bundled = sources.flatMap((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? []);
    expect(bundled).toContain("lit-html");
    const licenses = readFileSync(join(local, "dist/LICENSES.txt"), "utf8");
    for (const name of new Set(bundled)) {
      expect(licenses).toContain(readFileSync(`node_modules/${name}/LICENSE`, "utf8").trim());
    }
  });

  it("need no other package", () => {
    const [ofServer, ofLocal, manifest] = [server, local, installed].map((path) =>
      JSON.parse(readFileSync(join(path, "package.json"), "utf8")),
    );
    for (const each of [ofServer, ofLocal, manifest]) expect(each.dependencies ?? {}).toEqual({});
    // It knows the scripts of this version only.
    expect(ofServer.peerDependencies).toEqual({ "redlock-edge": ofServer.version });
    // Only for ./otel; and for ./hono, which imports nothing but types from it.
    const peers = ["@opentelemetry/api", "hono"];
    expect(Object.keys(manifest.peerDependencies)).toEqual(peers);
    expect(peers.filter((name) => !manifest.peerDependenciesMeta[name].optional)).toEqual([]);
    expect(manifest.sideEffects).toBe(false);
  });

  it("can be imported, export by export, and works", () => {
    const names = Object.keys(JSON.parse(readFileSync("package.json", "utf8")).exports)
      .filter((name) => !/otel|package\.json/.test(name))
      .map((name) => `redlock-edge${name.slice(1)}`)
      .concat("redlock-edge-server");
    const program = `
      import { endpointsFromEnv, Redlock } from "redlock-edge";
      import { Semaphore } from "redlock-edge/sync";
      import { memoryEndpoint } from "redis-rest-local/memory";
      import { start } from "redis-rest-local";
      const empty = [];
      for (const name of ${JSON.stringify(names)})
        if (Object.keys(await import(name)).length === 0) empty.push(name);
      const redlock = new Redlock({ endpoints: [memoryEndpoint()] });
      const { fence } = await redlock.acquire("a", { fencing: true });
      const { slot } = await new Semaphore(redlock, "s", { limit: 1 }).acquire();
      const local = await start({ count: 1, engine: "embedded" });
      const real = await new Redlock({ endpoints: endpointsFromEnv(local.env()) }).using("b", () => "used");
      const { message } = await local.endpoints[0].execute(["EVAL", "return 1", 0]).catch((error) => error);
      await local.close();
      console.log(JSON.stringify([empty, fence > 0, slot, real, message]));`;
    writeFileSync(join(folder, "program.mjs"), program);
    expect(names.length).toBeGreaterThan(9);
    expect(JSON.parse(run(process.execPath, "program.mjs"))).toEqual([
      [],
      true,
      0,
      "used",
      expect.stringContaining("Install redis-server"),
    ]);
  });

  it("runs the examples that need no build", async () => {
    await using local = await start({ count: 3 });
    const env = { ...process.env, ...local.env() };
    cpSync("examples", join(folder, "examples"), { recursive: true });
    const example = join(folder, "examples/lambda/invoice.mjs");
    const { stdout } = await promisify(execFile)(process.execPath, [example], { env });
    expect(stdout).toBe("paid, was paid, was paid\n");
    // It ends, although nothing is closed.
    expect(run(process.execPath, "--test", "examples/tests/node.test.js")).toMatch(/^# pass 2\n# fail 0$/m);
  });

  it("runs the example of a Worker's tests in workerd, and it ends", () => {
    for (const name of ["vitest", "@cloudflare"]) link(name);
    cpSync("examples/tests", join(folder, "examples/tests"), { recursive: true });
    const vitest = ["node_modules/vitest/vitest.mjs", "run", "--root", "examples/tests/workerd"];
    // On a busy machine, workerd may need more than 5 s to start.
    vitest.push("--testTimeout=60000");
    expect(stripVTControlCharacters(run(process.execPath, ...vitest))).toMatch(/^ *Tests +1 passed \(1\)$/m);
  });

  it("has types that are whole in every export, without Node's", () => {
    for (const peer of ["hono", "@opentelemetry"]) link(peer);
    const { exports } = JSON.parse(readFileSync("package.json", "utf8"));
    const entries = Object.keys(exports).filter((name) => name !== "./package.json");
    const lines = entries.map((name, index) => `export * as e${index} from "redlock-edge${name.slice(1)}";`);
    lines.push('export * as server from "redlock-edge-server";');
    const program = `
      import { type LockClient, Redlock } from "redlock-edge";
      const redlock = new Redlock({ endpoints: [] });
      export async function hold(client: LockClient = redlock): Promise<void> {
        await using lock = await redlock.acquire("a");
        await client.acquire(lock.token);
      }
      // @ts-expect-error what the functions beside a client need of it is internal
      redlock.settings;
      // @ts-expect-error and so are its defaults
      redlock.options;`;
    writeFileSync(join(folder, "entries.ts"), lines.join("\n") + program);
    checkTypes("entries.ts");
  });

  it("have commands that print their version and their usage", () => {
    const { version } = JSON.parse(readFileSync("package.json", "utf8"));
    const command = join(folder, "node_modules", ".bin", "redlock-edge");
    expect(run(command, "--version").trim()).toBe(version);
    expect(run(command, "--help")).toContain("doctor");
    const other = join(folder, "node_modules", ".bin", "redis-rest-local");
    expect(run(other, "--version").trim()).toBe(version);
    expect(run(other, "--help")).toContain("--count");
  });

  it("can be required from CommonJS", () => {
    const names = ["redlock-edge", "redlock-edge/sockets", "redlock-edge/node", "redlock-edge/idempotency"];
    writeFileSync(
      join(folder, "required.cjs"),
      `console.log(${JSON.stringify(names)}.every((name) => Object.keys(require(name)).length > 0));`,
    );
    expect(run(process.execPath, "required.cjs").trim()).toBe("true");
    // In TypeScript, but not with the modules of an earlier Node.
    writeFileSync(join(folder, "required.cts"), names.map((name) => `import "${name}";`).join("\n"));
    const compile = (module: string) => {
      const tsc = join(process.cwd(), "node_modules/typescript/lib/tsc.js");
      const args = [
        tsc,
        "--noEmit",
        "--skipLibCheck",
        "--target",
        "es2022",
        "--module",
        module,
        "required.cts",
      ];
      return spawnSync(process.execPath, args, { cwd: folder, encoding: "utf8" }).stdout;
    };
    expect(compile("nodenext")).toBe("");
    expect(compile("node16")).toContain("TS1479");
  });

  it("import no module of Node or another package, but in ./otel, in the commands and in the local endpoints", () => {
    const { exports } = JSON.parse(readFileSync("package.json", "utf8"));
    const entries = Object.values<{ default?: string }>(exports).flatMap((entry) => entry.default ?? []);
    expect(entries.length).toBeGreaterThan(10);
    const importsOf = (entry: string, dist: string) => {
      const names = codeOf(entry, dist).matchAll(/\bfrom ?"([^."][^"]*)"|\bimport ?\(?"([^."][^"]*)"/g);
      return [...new Set(Array.from(names, ([, one, two]) => `${entry}: ${one ?? two}`))];
    };
    const own = entries.flatMap((entry) => importsOf(entry.replace("./dist/", ""), join(installed, "dist")));
    expect(own).toEqual(["otel/index.js: @opentelemetry/api"]);
    const memory = importsOf("memory/index.js", join(local, "dist"));
    expect(memory.filter((each) => !each.endsWith("redlock-edge"))).toEqual([]);
    expect(importsOf("index.js", join(server, "dist")).join()).not.toContain("node:");
    expect(importsOf("cli/main.js", join(installed, "dist")).join()).toContain("node:");
  });

  it.each([
    ["redlockEdge", 375_000],
    ["redlockEdgeServer", 60_000],
    ["redisRestLocal", 900_000],
  ] as const)("are small: %s has at most %d bytes", (name, most) => {
    expect(statSync(packed[name].tarball).size).toBeLessThanOrEqual(most);
  });
});
