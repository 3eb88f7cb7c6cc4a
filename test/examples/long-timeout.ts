// `redlock-edge` as the examples import it in the tests: with a longer timeout, so that a busy machine does not look
// like an endpoint that does not answer.

import { Redlock as Given, type RedlockOptions } from "../../src/index.ts";
import { beyondTests } from "../support/beyond-tests.ts";

export * from "../../src/index.ts";

export class Redlock extends Given {
  constructor(options: RedlockOptions) {
    super({ timeout: beyondTests, ...options });
  }
}
