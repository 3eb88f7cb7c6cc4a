// Positions on earth as numbers of 52 bits, as Redis keeps them in sorted sets, and distances between them.

/** A position in degrees. */
export interface Position {
  readonly longitude: number;
  readonly latitude: number;
}

/** Least and greatest value of a coordinate, in degrees. */
type Limits = readonly [least: number, most: number];

const longitudes: Limits = [-180, 180];
/** Of the Mercator projection: nothing nearer to a pole has a number. */
const latitudes: Limits = [-85.05112878, 85.05112878];
/** Bits of each coordinate. */
const precision = 26;
/** Mean radius of the earth in m, as Redis computes with it. */
const earthRadius = 6_372_797.560856;
const alphabet = "0123456789bcdefghjkmnpqrstuvwxyz";

/** Whether a position has a number. */
export function isOnMap({ longitude, latitude }: Position): boolean {
  return isWithin(longitude, longitudes) && isWithin(latitude, latitudes);
}

/** The number of a position: the bits of its coordinates by turns, the longitude's first. */
export function encodePosition(position: Position): bigint {
  return interleave(position, latitudes);
}

/** The middle of the area that a number stands for. */
export function decodePosition(score: number): Position {
  const bits = BigInt.asUintN(64, BigInt(Number.isFinite(score) ? Math.trunc(score) : 0));
  let [longitude, latitude] = [0, 0];
  for (let bit = 31n; bit >= 0n; bit--) {
    longitude = 2 * longitude + Number((bits >> (2n * bit + 1n)) & 1n);
    latitude = 2 * latitude + Number((bits >> (2n * bit)) & 1n);
  }
  return { longitude: middle(longitude, longitudes), latitude: middle(latitude, latitudes) };
}

/** The geohash of a position, 11 characters. Its latitudes reach from pole to pole, unlike those of the numbers. */
export function geohash(position: Position): string {
  const bits = interleave(position, [-90, 90]);
  let text = "";
  for (let shift = 47n; shift >= 0n; shift -= 5n) text += alphabet[Number((bits >> shift) & 31n)];
  // Of an eleventh character there are only two bits. Redis leaves them out.
  return `${text}0`;
}

/** The distance of two positions in m, on a sphere. */
export function distanceOf(from: Position, to: Position): number {
  const [latitude, otherLatitude] = [radians(from.latitude), radians(to.latitude)];
  const u = Math.sin((otherLatitude - latitude) / 2);
  const v = Math.sin((radians(to.longitude) - radians(from.longitude)) / 2);
  const haversine = u * u + Math.cos(latitude) * Math.cos(otherLatitude) * v * v;
  return 2 * earthRadius * Math.asin(Math.sqrt(haversine));
}

function interleave({ longitude, latitude }: Position, latitudeLimits: Limits): bigint {
  const [x, y] = [cell(longitude, longitudes), cell(latitude, latitudeLimits)];
  let bits = 0n;
  // One more than the precision: the greatest value of a coordinate is the first of the next cell.
  for (let bit = BigInt(precision); bit >= 0n; bit--) {
    bits = (bits << 2n) | (((x >> bit) & 1n) << 1n) | ((y >> bit) & 1n);
  }
  return bits;
}

/** In which of 2^26 equal parts a coordinate is. */
function cell(value: number, [least, most]: Limits): bigint {
  return BigInt(Math.trunc(((value - least) / (most - least)) * 2 ** precision));
}

function middle(index: number, [least, most]: Limits): number {
  const edge = (at: number): number => least + (at / 2 ** precision) * (most - least);
  return Math.min(most, Math.max(least, (edge(index) + edge(index + 1)) / 2));
}

function isWithin(value: number, [least, most]: Limits): boolean {
  return value >= least && value <= most;
}

function radians(degrees: number): number {
  return degrees * (Math.PI / 180);
}
