import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { cellScript } from "../../../src/redis/cell.lua.ts";
import { type Script, shaOf, textOf } from "../../../src/redis/script.ts";
import { luaFiles, scriptOf } from "../../../tools/lua.mjs";

const root = new URL("../../../", import.meta.url);
const sha1 = (text: string) => createHash("sha1").update(text).digest("hex");

describe.each(luaFiles())("%s", (file) => {
  test("is sent without comments, and known by the hash of what each dialect sends", async () => {
    const module = (await import(/* @vite-ignore */ new URL(`${file}.ts`, root).href)) as Record<
      string,
      Script
    >;
    const [script] = Object.values(module) as [Script];
    expect(script.source).toBe(scriptOf(file));
    expect(script.source).not.toMatch(/--|^\s/m);
    for (const dialect of ["redis", "upstash"] as const) {
      expect(shaOf(script, dialect)).toBe(sha1(textOf(script.source, dialect)));
    }
  });
});

test("the script of cells uses only declared keys, and formats no number itself", () => {
  const { source } = cellScript;
  const keys = [...source.matchAll(/redis\.call\("(?!TIME)\w+", ([^,)]+)/g)].map(([, key]) => key);
  expect(keys.length).toBeGreaterThan(0);
  for (const key of keys) expect(key).toMatch(/^(unpack\((KEYS|gone)|KEYS\[)/);
  expect(source).not.toMatch(/tostring|%d/);
});
