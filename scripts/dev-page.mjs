import { browserScript } from "./browser-script.mjs";

/** The script of the page of `redis-rest-local`, from the sources. The package has it as a file: build.mjs. */
export const devPageScript = () => browserScript("local/src/page/browser/main.ts", { minify: false });
