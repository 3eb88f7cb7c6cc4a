import { browserScript } from "./browser-script.mjs";

/** The script of the page of `redlock-edge dev`, from the sources. The package has it as a file: build.mjs. */
export const devPageScript = () => browserScript("src/dev/page/browser/main.ts", { minify: false });
