import { mountPicture } from "./mount.ts";
import type { Timeline } from "./timeline.ts";

// The script of a page that shows one timeline (see html.ts).

const data = document.querySelector("#timeline");
const place = document.querySelector("#picture");
if (data && place) mountPicture(place, JSON.parse(data.textContent ?? "") as Timeline);
