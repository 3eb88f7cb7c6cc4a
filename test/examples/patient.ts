// `redlock-edge` as the examples get it in the tests: the same, but patient with a busy machine, which must not look
// like an endpoint that does not answer.

import { Redlock as Given, type RedlockOptions } from "../../src/index.ts";

export * from "../../src/index.ts";

export class Redlock extends Given {
  constructor(options: RedlockOptions) {
    super({ timeout: 5_000, ...options });
  }
}
