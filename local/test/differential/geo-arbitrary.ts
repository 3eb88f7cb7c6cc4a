import fc from "fast-check";
import { type Command, command, field, key, optional, some, value, type Word, word } from "./words.ts";

// Not at the limits of the map, where Redis' search overlooks members.
const longitude = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.constantFrom<Word>("13.361389", "15.087269", "-74.0445", "179.9999", "0", "1e1"),
  },
  { weight: 6, arbitrary: degrees(179.9) },
  { weight: 1, arbitrary: fc.constantFrom<Word>("180.1", "x", "nan", "-inf", "") },
);
const latitude = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom<Word>("38.115556", "37.502669", "40.6892", "-0.1", "0") },
  { weight: 6, arbitrary: degrees(60) },
  { weight: 1, arbitrary: fc.constantFrom<Word>("85.1", "-90", "x") },
);
const unit = fc.oneof(
  { weight: 6, arbitrary: word("m", "km", "KM", "ft", "mi") },
  { weight: 1, arbitrary: word("foo") },
);
const distance = fc.oneof(
  { weight: 6, arbitrary: word(0, 1, 200, 2500, "1e5", 5_000_000) },
  { weight: 1, arbitrary: word(-1, "x") },
);
const places = some(fc.tuple(longitude, latitude, field));
const flags = fc.constantFrom<Command>(["WITHDIST"], ["WITHHASH"], ["withcoord"], ["ASC"], ["desc"]);
const options = fc.oneof<fc.Arbitrary<Command>[]>(
  flags,
  flags,
  // Which of them ANY returns is not defined, so that there is room for all.
  fc.constantFrom<Command>(
    ["COUNT", 1],
    ["COUNT", 100, "ANY"],
    ["ANY"],
    ["COUNT", 0],
    ["COUNT", "x"],
    ["COUNT"],
  ),
);
const storing = fc.oneof(options, fc.tuple(word("STORE", "storedist"), key));
const orders = fc.constantFrom<Command>(
  ["ASC"],
  ["DESC"],
  ["COUNT", 2],
  ["STOREDIST"],
  ["storedist"],
  ["WITHDIST"],
);
const centre = fc.oneof(
  fc.tuple(word("FROMLONLAT", "fromlonlat"), longitude, latitude),
  fc.tuple(word("FROMMEMBER"), field),
  some(fc.tuple(word("FROMMEMBER"), field), 2),
);
const area = fc.oneof(
  fc.tuple(word("BYRADIUS", "byradius"), distance, unit),
  fc.tuple(word("BYBOX"), distance, distance, unit),
  some(fc.tuple(word("BYRADIUS", "BYBOX"), distance, unit), 2),
);

/** Thousandths: of two places that are closer than cells of the index, the order by distance is not defined. */
function degrees(most: number): fc.Arbitrary<Word> {
  return fc
    .integer({ min: -1_000 * most, max: 1_000 * most })
    .map((thousandths) => String(thousandths / 1_000));
}

/** A command with its name in upper case: errors of these quote it as it was sent. */
function upper(name: string, ...words: readonly fc.Arbitrary<Word | Command>[]): fc.Arbitrary<Command> {
  return command(name, ...words).map(([, ...rest]) => [name, ...rest]);
}

/** Commands on positions. */
export const positions: readonly fc.Arbitrary<Command>[] = [
  command("GEOADD", key, longitude, latitude, field, places),
  command("GEOADD", key, longitude, latitude, field, places),
  command(
    "GEOADD",
    key,
    some(word("NX", "xx", "CH"), 2),
    longitude,
    latitude,
    field,
    places,
    optional(field),
  ),
  command("GEOPOS", key, some(field)),
  command("GEOHASH", key, some(field)),
  command("GEODIST", key, field, field, optional(unit)),
  command("GEODIST", key, field, field, unit, unit),
  upper("GEOSEARCH", key, centre, area, some(options)),
  upper("GEOSEARCH", key, area, centre, some(storing)),
  upper("GEOSEARCHSTORE", key, key, centre, area, some(orders, 2)),
  command("GEORADIUS", key, longitude, latitude, distance, unit, some(storing)),
  command("GEORADIUS_RO", key, longitude, latitude, distance, unit, some(storing, 2)),
  command("GEORADIUSBYMEMBER", key, field, distance, unit, some(storing)),
  command("GEORADIUSBYMEMBER_RO", key, field, distance, unit, some(options, 2)),
  command("ZADD", key, word("0", "1.5", "3479099956230698"), field),
  command("SET", key, value),
  command("DEL", key),
];
