import { expect, test } from "vitest";
import { cellScript } from "../../../src/redis/cell.lua.ts";

// Redis Cluster refuses keys that are not declared, and servers format numbers in different ways.

test("the script of cells uses only declared keys, and formats no number itself", () => {
  const { source } = cellScript;
  const keys = [...source.matchAll(/redis\.call\("(?!TIME)\w+", ([^,)]+)/g)].map(([, key]) => key);
  expect(keys.length).toBeGreaterThan(0);
  for (const key of keys) expect(key).toMatch(/^(unpack\((KEYS|gone)|KEYS\[)/);
  expect(source).not.toMatch(/tostring|%d/);
});
