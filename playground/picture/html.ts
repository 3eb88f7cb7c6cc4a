import { escapeMarkup } from "./pen.ts";
import { toSvg } from "./svg.ts";
import type { Timeline } from "./timeline.ts";

const policy =
  "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

const css = `:root{color-scheme:light dark}
body{margin:0 auto;padding:16px;max-width:1400px;background:#fff;color:#15191e;font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
@media (prefers-color-scheme:dark){body{background:#14181d;color:#eef1f4}}
@media (max-width:620px){body{padding:12px 8px}}
h1{font-size:19px;line-height:1.3;margin:0 0 4px}
p.about{margin:0 0 12px;font-size:14px;opacity:.85}
svg{max-width:100%;height:auto}`;

/**
 * A page that shows a timeline: one file, which works without a network. Where scripts do not run it has the same
 * picture, but cannot zoom.
 *
 * @param script The bundle of browser.ts; `tools/draw.mjs` makes it.
 */
export function pictureHtml(timeline: Timeline, script: string): string {
  const title = escapeMarkup(timeline.title);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="content-security-policy" content="${policy}">
<title>${title}</title>
<style>${css}</style>
</head>
<body>
<h1>${title}</h1>
<p class="about">Time goes from left to right. Each client and each endpoint has a lane; slanted lines between them are requests and their replies.</p>
<div id="picture">
${toSvg(timeline)}</div>
<script type="application/json" id="timeline">${embedded(JSON.stringify(timeline))}</script>
<script type="module">${script.replaceAll(/<\/(script)/gi, "<\\/$1")}</script>
</body>
</html>
`;
}

/** JSON that cannot end the element that it is in. */
const embedded = (json: string): string => json.replaceAll("<", "\\u003c");
