import { Page } from "./page.ts";

// Another site, which has a header, shows the page as ?embed.
document.documentElement.classList.toggle("embedded", new URLSearchParams(location.search).has("embed"));
const page = new Page(document.querySelector<HTMLElement>("#page")!);
// For tests: what the page says is compared with what the endpoints hold.
Object.assign(globalThis, { playground: page });
void page.run();
