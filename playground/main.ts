import { Page } from "./page.ts";

const [root, challenge] = ["#page", "#challenge"].map((place) => document.querySelector(place)!);
const page = new Page(root!, challenge!);
// For tests: what the page says is compared with what the endpoints hold.
Object.assign(globalThis, { playground: page });
void page.run();
