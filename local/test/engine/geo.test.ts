import { describe, expect, it } from "vitest";
import { Engine } from "../../src/engine/engine.ts";

// The examples of redis.io. That random commands give the same answers as redis-server is shown by
// local/test/differential.

const sicily = ["GEOADD", "Sicily", "13.361389", "38.115556", "Palermo", "15.087269", "37.502669", "Catania"];

describe("positions", () => {
  it("have a distance, a geohash and coordinates", () => {
    const engine = new Engine();
    expect(engine.execute(sicily)).toBe(2);
    expect(engine.execute(["GEODIST", "Sicily", "Palermo", "Catania"])).toBe("166274.1516");
    expect(engine.execute(["GEODIST", "Sicily", "Palermo", "nobody"])).toBeNull();
    expect(engine.execute(["GEOHASH", "Sicily", "Palermo", "Catania"])).toEqual([
      "sqc8b49rny0",
      "sqdtr74hyu0",
    ]);
    expect(engine.execute(["GEOPOS", "Sicily", "Palermo", "nobody"])).toEqual([
      ["13.36138933897018433", "38.11555639549629859"],
      null,
    ]);
  });

  it("are found in a circle and in a box", () => {
    const engine = new Engine();
    engine.execute(sicily);
    engine.execute([
      "GEOADD",
      "Sicily",
      "12.758489",
      "38.788135",
      "edge1",
      "17.241510",
      "38.788135",
      "edge2",
    ]);
    const from = ["GEOSEARCH", "Sicily", "FROMLONLAT", 15, 37];
    expect(engine.execute([...from, "BYRADIUS", 200, "km", "ASC"])).toEqual(["Catania", "Palermo"]);
    const inBox = [...from, "BYBOX", 400, 400, "km", "ASC", "WITHDIST"];
    expect(engine.execute(inBox)).toEqual([
      ["Catania", "56.4413"],
      ["Palermo", "190.4424"],
      ["edge2", "279.7403"],
      ["edge1", "279.7405"],
    ]);
  });

  it("end where the map does", () => {
    const engine = new Engine();
    const corner = ["180", "85.05112878", "corner"];
    expect(engine.execute(["GEOADD", "map", ...corner])).toBe(1);
    expect(engine.execute(["GEOPOS", "map", "corner"])).toEqual([["180", "85.0511287799999991"]]);
    expect(() => engine.execute(["GEOADD", "map", "180", "85.06", "pole"])).toThrow(
      "ERR invalid longitude,latitude pair 180.000000,85.060000",
    );
  });
});

describe("HyperLogLogs", () => {
  it("count few elements exactly, and merge", () => {
    const engine = new Engine();
    expect(engine.execute(["PFADD", "some", "foo", "bar", "zap", "a"])).toBe(1);
    expect(engine.execute(["PFADD", "some", "a", "foo"])).toBe(0);
    engine.execute(["PFADD", "more", "a", "b", "c", "foo"]);
    expect(engine.execute(["PFCOUNT", "some", "more"])).toBe(6);
    expect(engine.execute(["PFMERGE", "all", "some", "more"])).toBe("OK");
    expect(engine.execute(["PFCOUNT", "all"])).toBe(6);
    expect(engine.execute(["TYPE", "all"])).toBe("string");
  });

  it("estimate many elements to 2 %", () => {
    const engine = new Engine();
    const elements = Array.from({ length: 20_000 }, (_, index) => `element ${index}`);
    engine.execute(["PFADD", "many", ...elements]);
    const error = Number(engine.execute(["PFCOUNT", "many"])) / 20_000 - 1;
    expect(Math.abs(error)).toBeLessThan(0.02);
  });
});
