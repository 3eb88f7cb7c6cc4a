// The example as it is, but an answer of the wire can end the invocation, as a crash of its isolate would.

import worker from "../../../examples/queue-cloudflare/worker.ts";

const send = globalThis.fetch;
globalThis.fetch = async (...request) => {
  const answer = await send(...request);
  if (answer.headers.has("x-kill")) process.exit(1);
  return answer;
};

export default worker;
