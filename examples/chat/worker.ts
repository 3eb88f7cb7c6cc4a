// The webhook on Cloudflare Workers.

import { chat } from "./app.ts";

export default chat();
