// INCRBYFLOAT computes with the 80-bit floats of x86, whose mantissa has 64 bits, and prints 17 decimals: 1.1 + 0.2 is
// 1.3, not 1.3000000000000001 as with doubles.

/** mantissa · 2^exponent, the mantissa with 64 bits. */
interface Extended {
  readonly mantissa: bigint;
  readonly exponent: number;
}

const mantissaBits = 64;
const decimals = 17;

/**
 * Adds two decimal numbers as INCRBYFLOAT does, and prints the sum without exponent and trailing zeros.
 *
 * @param left digits with an optional point and exponent; must be valid
 * @param right the same
 * @example
 * addExtended("1.1", "0.2"); // "1.3"
 */
export function addExtended(left: string, right: string): string {
  const [first, second] = [readDecimal(left), readDecimal(right)];
  const least = Math.min(first.exponent, second.exponent);
  const sum =
    (first.mantissa << BigInt(first.exponent - least)) + (second.mantissa << BigInt(second.exponent - least));
  const { mantissa, exponent } = round(sum, 1n);
  return print({ mantissa, exponent: exponent + least });
}

function readDecimal(text: string): Extended {
  const [, sign, whole, fraction = "", exponent = "0"] =
    /^([+-]?)([0-9]*)\.?([0-9]*)(?:e([+-]?[0-9]+))?$/i.exec(text)!;
  const digits = BigInt(`${whole}${fraction}` || "0") * (sign === "-" ? -1n : 1n);
  const power = Number(exponent) - fraction.length;
  return power < 0 ? round(digits, 10n ** BigInt(-power)) : round(digits * 10n ** BigInt(power), 1n);
}

/** The nearest extended float to a fraction. */
function round(numerator: bigint, denominator: bigint): Extended {
  if (numerator === 0n) return { mantissa: 0n, exponent: 0 };
  const magnitude = numerator < 0n ? -numerator : numerator;
  let shift = mantissaBits - (bitLength(magnitude) - bitLength(denominator));
  // The length of the quotient is the difference of both lengths, or one more.
  if (bitLength(scaled(magnitude, shift) / scaled(denominator, -shift)) > mantissaBits) shift--;
  const mantissa = divideToNearest(scaled(magnitude, shift), scaled(denominator, -shift));
  return { mantissa: numerator < 0n ? -mantissa : mantissa, exponent: -shift };
}

function print({ mantissa, exponent }: Extended): string {
  const magnitude = (mantissa < 0n ? -mantissa : mantissa) * 10n ** BigInt(decimals);
  const digits = divideToNearest(scaled(magnitude, exponent), scaled(1n, -exponent)).toString();
  const padded = digits.padStart(decimals + 1, "0");
  const whole = padded.slice(0, -decimals);
  const fraction = padded.slice(-decimals).replace(/0+$/, "");
  const plain = fraction === "" ? whole : `${whole}.${fraction}`;
  return mantissa < 0n && plain !== "0" ? `-${plain}` : plain;
}

/** Multiplies by a power of two if the exponent is positive. */
function scaled(value: bigint, power: number): bigint {
  return power > 0 ? value << BigInt(power) : value;
}

/** Divides, rounding to nearest and ties to even, as the hardware does. */
function divideToNearest(numerator: bigint, denominator: bigint): bigint {
  const quotient = numerator / denominator;
  const twice = (numerator % denominator) * 2n;
  if (twice < denominator || (twice === denominator && quotient % 2n === 0n)) return quotient;
  return quotient + 1n;
}

function bitLength(value: bigint): number {
  return value.toString(2).length;
}
