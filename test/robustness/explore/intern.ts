const numbers = new Map<string, number>();

/** A number for a text: the same for the same text, and never the same for another. */
export function intern(text: string): number {
  let number = numbers.get(text);
  if (number === undefined) {
    number = numbers.size + 1;
    numbers.set(text, number);
  }
  return number;
}
