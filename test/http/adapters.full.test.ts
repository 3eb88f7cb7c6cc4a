import { testAdapters } from "./adapters-suite.ts";

// Those that adapters.test.ts leaves out.
testAdapters((index) => index % 29 !== 0);
