// Files that bundlers include as text: see the rules in wrangler.toml and tools/local-worker.mjs.

declare module "*.css" {
  const text: string;
  export default text;
}

declare module "*.client.js" {
  const text: string;
  export default text;
}
