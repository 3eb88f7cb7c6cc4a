/** A command that Redis would refuse, or that this server does not have. Its message is the reply. */
export class CommandError extends Error {
  override readonly name = "CommandError";
}

/** The error for a command that this server does not have. */
export function unknownCommand(name: string): CommandError {
  const said = name.slice(0, 64).replaceAll(/[^\w ]/g, "?");
  return new CommandError(
    `ERR unknown command '${said}': this is a lock server of redlock-edge, and no Redis`,
  );
}

export function syntaxError(): CommandError {
  return new CommandError("ERR syntax error");
}

export function wrongType(): CommandError {
  return new CommandError("WRONGTYPE Operation against a key holding the wrong kind of value");
}

/** A whole number in an argument, as Redis reads it: decimal digits without a space, a plus or a zero in front. */
export function integer(text: string): number {
  const value = /^(?:0|-?[1-9]\d*)$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isSafeInteger(value)) return value;
  throw new CommandError("ERR value is not an integer or out of range");
}
