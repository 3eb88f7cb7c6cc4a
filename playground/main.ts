import { Page } from "./page.ts";

const page = new Page(document.querySelector<HTMLElement>("#page")!);
// For tests: what the page says is compared with what the endpoints hold.
Object.assign(globalThis, { playground: page });
void page.run();
