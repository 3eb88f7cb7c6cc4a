// The page's document and style. Both are the same for everybody, and have no secret: what the page shows it asks for
// with the token.

export const pageHtml = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>redis-rest-local</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/page.css">
</head>
<body>
<header>
<h1>redis-rest-local <small>local endpoints: what your program does with them appears here; with a fault switched on, you see how it copes</small></h1>
<p id="summary" role="status">Connecting …</p>
</header>
<main id="page"><noscript>This page needs its script.</noscript></main>
<script type="module" src="/page.js"></script>
</body>
</html>
`;

export const pageCss = `:root {
  color-scheme: light dark;
  --paper: #fff; --ground: #f4f6f8; --ink: #15191e; --soft: #565f6b; --line: #d5dae1; --accent: #0067ad;
  --good: #00693e; --bad: #c4001d; --warn: #8a5200; --on: #e3f1fb;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14181d; --ground: #0d1013; --ink: #eef1f4; --soft: #a5afba; --line: #323a44; --accent: #5cb3f5;
    --good: #54d598; --bad: #ff6b7a; --warn: #ffb866; --on: #12324a;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 14px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; font-variant-numeric: tabular-nums; }
header, main { max-width: 1320px; margin: 0 auto; padding: 0 16px; }
header { padding-top: 14px; }
h1 { font-size: 20px; margin: 0; }
h1 small { font-size: 14px; font-weight: 400; color: var(--soft); margin-left: 6px; }
h2 { font-size: 15px; margin: 0 0 6px; }
h2 small { font-weight: 400; color: var(--soft); margin-left: 6px; }
h3 { font-size: 14px; margin: 0; }
p { margin: 0 0 6px; }
code { font: 12.5px/1.4 ui-monospace, "DejaVu Sans Mono", Menlo, monospace; overflow-wrap: anywhere; }
pre { margin: 6px 0 0; white-space: pre-wrap; overflow-wrap: anywhere; }
#summary { font-size: 15px; margin: 2px 0 12px; }
#summary.bad { color: var(--bad); font-weight: 600; }
.page { display: grid; gap: 14px; padding-bottom: 40px; grid-template-columns: minmax(0, 1fr); }
section, .card { background: var(--paper); border: 1px solid var(--line); border-radius: 8px; padding: 12px 14px; min-width: 0; }
.cards { display: grid; gap: 14px; grid-template-columns: repeat(auto-fit, minmax(min(300px, 100%), 1fr)); }
.soft, .none { color: var(--soft); }
.card-head { display: flex; align-items: baseline; gap: 8px; flex-wrap: wrap; }
.badge { border-radius: 99px; padding: 0 8px; border: 1px solid currentColor; font-size: 12px; font-weight: 600; }
.up, .good { color: var(--good); }
.stopped, .silent, .bad { color: var(--bad); }
.faulty, .warn { color: var(--warn); }
.card[data-status="stopped"], .card[data-status="silent"] { border-color: var(--bad); }
.card[data-status="faulty"] { border-color: var(--warn); border-left-width: 4px; }
.counts { display: flex; gap: 4px 12px; flex-wrap: wrap; margin: 6px 0; }
.counts b { font-size: 17px; }
.legend { font-size: 12px; border-top: 1px solid var(--line); padding-top: 6px; margin-bottom: 4px; }
.switches { display: flex; flex-wrap: wrap; gap: 6px; }
button { font: inherit; color: inherit; background: var(--paper); border: 1px solid var(--line); border-radius: 6px; padding: 2px 10px; cursor: pointer; }
button:hover { border-color: var(--accent); }
button[aria-checked="true"] { background: var(--on); border-color: var(--warn); color: var(--warn); font-weight: 600; }
button:focus-visible, input:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
.actions { display: flex; flex-wrap: wrap; gap: 6px; margin-left: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: 3px 14px 3px 0; vertical-align: baseline; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
th { font-size: 12px; font-weight: 500; color: var(--soft); white-space: nowrap; }
tr:last-child td { border-bottom: 0; }
td.number, th.number { text-align: right; white-space: nowrap; }
td.name { font: 600 12.5px/1.4 ui-monospace, "DejaVu Sans Mono", Menlo, monospace; }
.shares { white-space: nowrap; }
.share { display: inline-block; width: 11px; height: 11px; border-radius: 3px; border: 1.5px solid var(--soft); margin-right: 3px; vertical-align: -1px; }
.share.same { background: var(--good); border-color: var(--good); }
.share.other { background: var(--warn); border-color: var(--warn); transform: rotate(45deg) scale(.85); }
.share.unknown { border-style: dotted; }
input { font: inherit; width: 100%; padding: 6px 10px; border: 1px solid var(--line); border-radius: 8px; background: var(--paper); color: inherit; }
@media (max-width: 760px) {
  h1 small { display: block; margin: 2px 0 4px; line-height: 1.35; }
  header, main { padding-left: 8px; padding-right: 8px; }
  section, .card { padding: 10px; }
  thead { display: none; }
  table, tbody { display: block; }
  tr { display: flex; flex-wrap: wrap; gap: 0 12px; padding: 5px 0; border-bottom: 1px solid var(--line); }
  td { border: 0; padding: 0; }
  td.name { order: -1; flex: 0 0 100%; }
  td.name:empty { display: none; }
  td.number::before { content: attr(data-label) " "; color: var(--soft); font-size: 12px; }
}
`;
