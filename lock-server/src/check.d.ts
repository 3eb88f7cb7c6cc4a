/** A number within bounds, both included. */
export declare function checkNumber(name: string, value: number, min: number, max: number): number;
/**
 * Options as an object that has only known names: a misspelt one would silently leave its default in place.
 *
 * @param usual the option that is meant where somebody gives a number instead
 * @throws TypeError with the unknown name, and the one that was probably meant
 */
export declare function checkOptions<Options extends object>(
  what: string,
  options: Options,
  known: Readonly<Record<keyof Options, 1>>,
  usual?: string,
): Options;
/** The error for a value that is not what it must be: `expected` says what, with an article. */
export declare function wrongType(name: string, value: unknown, expected: string): TypeError;
/** What to do about an unknown name: the one that was probably meant, else all that there are. */
export declare function hintFor(given: string, names: readonly string[]): string;
