import { testAdapters } from "./adapters-suite.ts";

// Every 29th: of Express each handler, and each stack with each phase, because 29 divides neither the phases nor the stacks.
testAdapters((index) => index % 29 === 0);
