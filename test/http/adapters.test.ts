import { testAdapters } from "./adapters-suite.ts";

// Every seventh: each handler and each stack with each phase, because 7 divides neither the phases nor the stacks.
testAdapters((index) => index % 7 === 0);
