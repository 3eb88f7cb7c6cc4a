// How much one request may ask of an object, which answers nobody else meanwhile.

/** The most commands of a request. */
const mostCommands = 10_000;

/** The most words of a request: a command asks its storage about once for each. */
const mostWords = 100_000;

/** Why a request has too many commands or words; undefined: it is within the limits. */
export function whyTooLong(commands: readonly (readonly unknown[])[]): string | undefined {
  const words = commands.reduce((sum, { length }) => sum + length, 0);
  if (commands.length <= mostCommands && words <= mostWords) return undefined;
  return `ERR max request size of ${mostCommands} commands and ${mostWords} words exceeded, with ${commands.length} and ${words}: nothing was executed`;
}
