// wrangler.toml has a rule that bundles style sheets as text.
declare module "*.css" {
  const text: string;
  export default text;
}
