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

/** A whole number in an argument. */
export function integer(text: string): number {
  const value = Number(text);
  if (text !== "" && Number.isSafeInteger(value)) return value;
  throw new CommandError("ERR value is not an integer or out of range");
}
