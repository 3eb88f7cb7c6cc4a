import { mountPicture } from "../../../playground/picture/mount.ts";

// A page for page.long.test.ts, which calls it from outside.

declare global {
  interface Window {
    mountPicture: typeof mountPicture;
  }
}
window.mountPicture = mountPicture;
