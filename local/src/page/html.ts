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
a { color: var(--accent); }
code { font: 12.5px/1.4 ui-monospace, "DejaVu Sans Mono", Menlo, monospace; overflow-wrap: anywhere; }
pre { margin: 6px 0 0; white-space: pre-wrap; overflow-wrap: anywhere; }
#summary { font-size: 15px; margin: 2px 0 12px; }
#summary.bad { color: var(--bad); font-weight: 600; }
main { display: grid; gap: 14px; padding-bottom: 40px; grid-template-columns: minmax(0, 1fr); }
section, .card, .gate { background: var(--paper); border: 1px solid var(--line); border-radius: 8px; padding: 12px 14px; min-width: 0; }
.cards { display: grid; gap: 14px; grid-template-columns: repeat(auto-fit, minmax(min(300px, 100%), 1fr)); }
.soft, .none { color: var(--soft); }
.card-head { display: flex; align-items: baseline; gap: 8px; flex-wrap: wrap; }
.badge { border-radius: 99px; padding: 0 8px; border: 1px solid currentColor; font-size: 12px; font-weight: 600; }
.up, .good { color: var(--good); }
.stopped, .silent, .bad { color: var(--bad); }
.faulty, .warn { color: var(--warn); }
.card[data-status="stopped"], .card[data-status="silent"] { border-color: var(--bad); }
.card[data-faulty] { border-color: var(--warn); border-left-width: 4px; }
.counts { display: flex; gap: 4px 18px; flex-wrap: wrap; margin: 6px 0; }
.counts b { font-size: 17px; }
fieldset { border: 0; border-top: 1px solid var(--line); margin: 8px 0 0; padding: 6px 0 0; display: grid;
  grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 1px 10px; }
legend { float: left; grid-column: 1 / -1; padding: 0; font-size: 12px; color: var(--soft); }
label.switch { display: flex; gap: 6px; align-items: center; padding: 2px 4px; border-radius: 5px; cursor: pointer; }
label.switch:has(:checked) { background: var(--on); font-weight: 600; }
label.switch input { accent-color: var(--accent); margin: 0; flex: none; }
button { font: inherit; color: inherit; background: var(--paper); border: 1px solid var(--line); border-radius: 6px; padding: 2px 10px; cursor: pointer; }
button:hover { border-color: var(--accent); }
button:focus-visible, input:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
.actions { display: flex; flex-wrap: wrap; gap: 6px; margin-left: auto; }
.rules { margin: 6px 0 0; }
table { border-collapse: collapse; width: 100%; table-layout: fixed; }
th, td { text-align: left; padding: 3px 10px 3px 0; vertical-align: baseline; border-bottom: 1px solid var(--line); }
th, td, .start { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.cut { font-size: 12.5px; font-family: ui-monospace, "DejaVu Sans Mono", Menlo, monospace; white-space: nowrap; }
/* Room for the 12 characters of a name's end, which are of one width. */
.start { display: inline-block; vertical-align: bottom; max-width: calc(100% - 12.1ch); }
th { font-size: 12px; font-weight: 500; color: var(--soft); }
tr:last-child td { border-bottom: 0; }
td.number, th.number { text-align: right; }
td.name { font-weight: 600; }
.share { display: inline-block; width: 11px; height: 11px; border-radius: 3px; border: 1.5px solid var(--soft); margin-right: 3px; vertical-align: -1px; }
.share.same { background: var(--good); border-color: var(--good); }
.share.other { background: var(--warn); border-color: var(--warn); transform: rotate(45deg) scale(.85); }
.share.unknown { border-style: dotted; }
.scroll { max-height: 420px; overflow-y: auto; }
#wrong { border-color: var(--bad); border-left-width: 4px; }
#wrong h2 { color: var(--bad); }
#wrong[hidden] { display: none; }
.happened { list-style: none; margin: 0; padding: 0; }
.happened li { display: flex; gap: 0 5px; padding: 1px 0; }
.happened time { color: var(--soft); flex: none; margin-right: 5px; }
.happened .cut { min-width: 0; font-weight: 600; }
/* As wide as its text where there is room: rounding must not cut it. */
.happened .start { max-width: calc(100% - 11.9ch); }
.happened .said { flex: none; max-width: 65%; overflow-wrap: anywhere; }
input.search { font: inherit; width: 100%; padding: 6px 10px; border: 1px solid var(--line); border-radius: 8px; background: var(--paper); color: inherit; }
.gate { max-width: 620px; }
.gate input { font: inherit; width: 100%; padding: 6px 8px; border: 1px solid var(--line); border-radius: 6px; background: var(--ground); color: inherit; margin: 4px 0 8px; }
#failure:empty { display: none; }
@media (max-width: 620px) {
  h1 small { display: block; margin: 2px 0 4px; line-height: 1.35; }
  /* The switches come before all lists, beside each other: below each other, they would push the lists far down. */
  .cards { order: -1; grid: auto / auto-flow 88%; overflow-x: auto; gap: 8px; }
  #failure, #wrong { order: -2; }
  header, main { padding-left: 8px; padding-right: 8px; }
  section, .card, .gate { padding: 10px; }
  .happened li { flex-wrap: wrap; }
  .happened .cut { flex: 1; }
  .happened .said { flex: 0 0 100%; max-width: none; }
}
@media (max-width: 900px) {
  table.stack thead { display: none; }
  table.stack, table.stack tbody { display: block; }
  table.stack tr { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 0 10px; padding: 5px 0; border-bottom: 1px solid var(--line); }
  table.stack td { display: block; border: 0; padding: 0; text-align: left; }
  table.stack td::before { content: attr(data-label) " "; color: var(--soft); font-weight: 400; font-size: 12px; }
  table.stack td.name, table.stack td:has(.cut), table.stack td:last-child { grid-column: 1 / -1; }
  table.stack td:has(.cut) { display: flex; gap: 4px; align-items: baseline; }
  table.stack .cut { flex: 1; min-width: 0; }
}
`;
