// Colours and lines. Every colour has a companion that does not need it: letters, shapes, patterns or dashes.

/** Clients have these colours in turn. All are told apart by readers with any common colour blindness. */
export const clientColours = 6;

const light = `--paper:#ffffff;--ink:#15191e;--soft:#565f6b;--grid:#e3e7ec;--lane:#f5f7f9;--valid:62%;--axis:#8b95a1;
--fault:#6a5a3c;--fault-fill:#efe6d2;--bad:#c4001d;--good:#0b6e33;--flag-ink:#ffffff;
--c0:#0067ad;--c1:#b45309;--c2:#7b3f9e;--c3:#00786a;--c4:#6b6a00;--c5:#475569`;

const dark = `--paper:#14181d;--ink:#eef1f4;--soft:#a5afba;--grid:#2a3139;--lane:#1b2027;--valid:45%;--axis:#77828e;
--fault:#d8c59a;--fault-fill:#3a3325;--bad:#ff5c6c;--good:#4cc977;--flag-ink:#10060a;
--c0:#5cb3f5;--c1:#ffad5c;--c2:#d19bf0;--c3:#4fd1bf;--c4:#d4d25a;--c5:#b3c0d1`;

const colours = Array.from({ length: clientColours }, (_, at) => `.picture .c${at}{--c:var(--c${at})}`).join(
  "",
);

/** The style of a picture, in an SVG file or in a page. */
export const pictureCss: string = `
.picture{${light};color-scheme:light dark}
@media (prefers-color-scheme:dark){.picture{${dark}}}
.picture{--c:var(--soft);background:var(--paper);font:11px/1.3 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;font-variant-numeric:tabular-nums}
${colours}
.picture text{fill:var(--ink)}
.picture .soft{fill:var(--soft)}
.picture .heading{font-size:15px;font-weight:600}
.picture .group{font-size:11px;font-weight:600;letter-spacing:.08em;fill:var(--soft)}
.picture .name{font-size:12px;font-weight:600}
.picture .halo{paint-order:stroke;stroke:var(--paper);stroke-width:3px;stroke-linejoin:round}
.picture .paper{fill:var(--paper)}
.picture .lane{fill:var(--lane)}
.picture .grid{stroke:var(--grid);stroke-width:1}
.picture .axis{stroke:var(--axis);stroke-width:1.5}
.picture .badge{fill:var(--c)}
.picture .badge-text{fill:var(--paper);font-weight:700;text-anchor:middle}
.picture .bar{fill:color-mix(in srgb,var(--c) 24%,var(--paper));stroke:var(--c);stroke-width:1.2}
.picture .validity{fill:color-mix(in srgb,var(--c) var(--valid),var(--paper))}
.picture .unsafe{fill:color-mix(in srgb,var(--c) 14%,var(--paper));stroke:var(--c);stroke-width:1.2;stroke-dasharray:2 2}
.picture .expiry{stroke:var(--c);stroke-width:2;stroke-dasharray:2 2}
.picture .tick{stroke:var(--c);stroke-width:2}
.picture .bar-text{font-weight:600;paint-order:stroke;stroke-width:2.5px;stroke-linejoin:round;stroke:color-mix(in srgb,var(--c) 24%,var(--paper))}
.picture .validity-text{stroke:color-mix(in srgb,var(--c) var(--valid),var(--paper))}
.picture .remark{fill:var(--soft);font-style:italic}
.picture .flight{fill:none;stroke:var(--c);stroke-width:1.3}
.picture .reply{stroke-dasharray:4 2.5}
.picture .rest{stroke-width:1;stroke-dasharray:1 3}
.picture .late{stroke-width:2.6}
.picture .open{stroke-dasharray:1 3}
.picture .head{fill:var(--c);stroke:none}
.picture .stop{stroke:var(--c);stroke-width:2;fill:none}
.picture .vote{fill:var(--c);stroke:var(--c);stroke-width:1.3}
.picture .vote.no{fill:var(--paper)}
.picture .cross{stroke:var(--paper);stroke-width:5;fill:none}
.picture .cross-ink{stroke:var(--ink);stroke-width:2;fill:none}
.picture .call{stroke:var(--c);stroke-width:5;stroke-opacity:.45}
.picture .result{stroke:var(--paper);stroke-width:1.5}
.picture .granted{fill:var(--ink)}
.picture .refused{fill:var(--paper);stroke:var(--ink);stroke-width:2}
.picture .mark{stroke:var(--paper);stroke-width:1.8;fill:none}
.picture .dark-mark{stroke:var(--ink);stroke-width:2.2;fill:none}
.picture .fault{fill:var(--fault-fill);fill-opacity:.75}
.picture .fault-edge{stroke:var(--fault);stroke-width:1;stroke-dasharray:3 2}
.picture .fault-text{fill:var(--fault);font-weight:600}
.picture .hatch{stroke:var(--fault);stroke-width:1.6;stroke-opacity:.55}
.picture .broken{--c:var(--bad)}
.picture .upheld{--c:var(--good)}
.picture .verdict{stroke:var(--c);stroke-width:2.5}
.picture .flag{fill:var(--c)}
.picture .flag-text{fill:var(--flag-ink);font-size:14px;font-weight:700}
`.replaceAll("\n", "");
