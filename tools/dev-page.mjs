import { bundle } from "./bundle.mjs";

/** The script of the page of `redis-rest-local`, from the sources. The package has it as a file: build.mjs. */
export const devPageScript = () => bundle("local/src/page/browser/main.ts");
