"""How the page looks: one sheet, by hand; light and dark, on a telephone and on paper."""

from __future__ import annotations

__all__ = ["STYLE"]

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #fdfdfb; --ink: #1d1d1b; --soft: #5a5a55; --rule: #d9d8d2; --tint: #f4f3ee;
  --link: #0b4a8f; --good: #1c6a3f; --bad: #a32b13; --bad-tint: #fbeeea;
  --text: Charter, "Bitstream Charter", "Iowan Old Style", "Palatino Linotype", Palatino, P052,
    Georgia, "Noto Serif", serif;
  --plain: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #16181b; --ink: #e6e4de; --soft: #a9a8a1; --rule: #3a3d42; --tint: #1f2226;
    --link: #8cbcf2; --good: #7fcf9f; --bad: #ff9e85; --bad-tint: #33211d;
  }
}
*, *::before, *::after { box-sizing: border-box; }
html { font: 100%/1.55 var(--text); background: var(--paper); color: var(--ink);
  -webkit-text-size-adjust: 100%; text-size-adjust: 100%; scroll-padding-top: 1rem; }
body { margin: 0 auto; max-width: 62rem; padding: 2rem 1rem 4rem; }
a { color: var(--link); text-underline-offset: .15em; text-decoration-thickness: .06em; }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; border-radius: 2px; }
.skip { position: absolute; left: -100vw; }
.skip:focus { left: 1rem; top: .5rem; background: var(--paper); padding: .3rem .6rem; z-index: 1; }
h1, h2, h3 { line-height: 1.2; font-weight: 600; text-wrap: balance; }
h1 { font-size: 2.1rem; margin: 0 0 .6rem; letter-spacing: -.01em; }
h2 { font-size: 1.5rem; margin: 0 0 .7rem; }
h3 { font: 600 .95rem/1.3 var(--plain); margin: 2.2rem 0 .6rem; }
p, ul { margin: 0 0 .8rem; max-width: 42rem; }
ul { padding-left: 1.2rem; }
li { margin-bottom: .35rem; }
.question { font-style: italic; color: var(--soft); font-size: 1.06rem; }
.verdict { font-size: 1.2rem; line-height: 1.4; }
.verdict ~ .scroll { margin-top: 1rem; }
.warning { border-left: 4px solid var(--bad); background: var(--bad-tint); padding: .6rem .9rem; }
details { margin: 1.5rem 0 .8rem; }
h3 + details { margin-top: 0; }
details .scroll { margin-top: .5rem; }
summary { font: .84rem/1.5 var(--plain); cursor: pointer; width: fit-content; }
.note, .key { font: .82rem/1.45 var(--plain); color: var(--soft); }
nav { font: .95rem/1.4 var(--plain); margin: 1.6rem 0 0; padding: .9rem 1rem;
  background: var(--tint); border-radius: 6px; }
nav p { margin: 0 0 .4rem; font-weight: 600; }
nav ol { list-style: none; margin: 0; padding: 0; }
nav li { margin: 0; }
nav a { display: block; padding: .28rem 0; text-decoration: none; }
nav a:hover { text-decoration: underline; }
section { border-top: 1px solid var(--rule); margin-top: 2.6rem; padding-top: 1.8rem; }
main > section:first-child { border: 0; margin-top: 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1.2rem; margin: 1rem 0;
  font: .86rem/1.45 var(--plain); }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }

.scroll { overflow-x: auto; max-width: 100%; margin: 1.5rem 0 .5rem; }
h3 + .scroll { margin-top: 0; }
table { border-collapse: collapse; font: .84rem/1.4 var(--plain);
  font-variant-numeric: tabular-nums lining-nums; border-top: 1.5px solid var(--ink);
  border-bottom: 1.5px solid var(--ink); }
caption { text-align: left; padding: 0 0 .45rem; font-weight: 600; }
th, td { padding: .32rem .7rem .32rem 0; text-align: left; vertical-align: top; }
th + th, th + td, td + td, td + th { padding-left: .7rem; }
tr > :last-child { padding-right: .2rem; }
thead th { border-bottom: 1px solid var(--ink); font-weight: 600; vertical-align: bottom; }
tbody th { font-weight: 400; }
tbody tr + tr > * { border-top: 1px solid var(--rule); }
tbody tr.reason > * { border-top: 0; padding-top: 0; color: var(--ink); max-width: 50rem;
  white-space: normal; }
.n { text-align: right; white-space: nowrap; }
thead .n { white-space: normal; }
.beside { width: 100%; }
.beside tbody th { min-width: 12rem; }
.mark { white-space: nowrap; }
.better { color: var(--good); }
.worse { color: var(--bad); font-weight: 600; }
tr.is-worse > *, tr.reason > * { background: var(--bad-tint); }
tr.is-worse > :first-child, tr.reason > :first-child { box-shadow: inset 3px 0 var(--bad);
  padding-left: .7rem; }

.figures { display: flex; flex-wrap: wrap; align-items: start; gap: 1.6rem 1.5rem; }
figure { margin: 0; width: calc(1.22 * var(--natural) + 1.9rem); max-width: 100%; }
.card { background: #fff; border: 1px solid var(--rule); border-radius: 6px; padding: .9rem;
  overflow-x: auto; }
.card svg { display: block; width: 100%; height: auto;
  min-width: min(.92 * var(--natural), 38rem); }
.card svg * { stroke-linejoin: round; stroke-linecap: butt; }
figcaption { padding-top: .55rem; font: .86rem/1.45 var(--plain); color: var(--soft);
  max-width: 46rem; }
.files { font: .84rem/1.6 var(--plain); max-width: none; }
.files a { white-space: nowrap; }
footer { margin-top: 3rem; border-top: 1px solid var(--rule); padding-top: .8rem; }

@media (min-width: 82rem) {
  body { max-width: 80rem; display: grid; grid-template-columns: 15rem minmax(0, 1fr);
    column-gap: 3rem; }
  body > * { grid-column: 2; }
  nav { grid-column: 1; grid-row: 1 / span 3; align-self: start; position: sticky; top: 1.5rem;
    margin: .2rem 0 0; font-size: .86rem; max-height: calc(100vh - 3rem); overflow-y: auto; }
}
@media (max-width: 40rem) {
  .beside, .beside tbody { display: block; }
  .beside thead { display: none; }
  .beside tr { display: grid; grid-template-columns: 1fr 1fr 1fr; gap: .1rem .8rem;
    padding: .5rem .1rem; }
  .beside tr + tr { border-top: 1px solid var(--rule); }
  .beside tr > *, .beside tr > * + * { display: block; border: 0; padding: 0; text-align: left; }
  .beside tbody th, .beside tr.reason > * { grid-column: 1 / -1; font-weight: 600; }
  .beside tr.reason > * { font-weight: 400; }
  .beside td[data-label]::before { content: attr(data-label); display: block; color: var(--soft);
    font-weight: 400; font-size: .76rem; }
  .beside tr.is-worse, .beside tr.reason { background: var(--bad-tint);
    box-shadow: inset 3px 0 var(--bad); padding-left: .7rem; }
  .beside tr.reason { border-top: 0; padding-top: 0; }
  .beside tr.is-worse > *, .beside tr.reason > * { background: none; box-shadow: none;
    padding-left: 0; }
}
@media (max-width: 30rem) {
  body { padding-top: 1.2rem; }
  h1 { font-size: 1.7rem; }
  h2 { font-size: 1.3rem; }
  dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: .5rem; }
  .card { padding: .4rem; }
  th + th, th + td, td + td, td + th { padding-left: .35rem; }
  th, td { padding-right: .35rem; }
}
@media print {
  :root { color-scheme: light; --paper: #fff; --ink: #000; --soft: #444; --rule: #bbb;
    --tint: #f4f4f4; --link: #000; --good: #000; --bad: #000; --bad-tint: #f2f2f2; }
  @page { margin: 18mm 16mm; }
  html { font-size: 10pt; }
  body { display: block; max-width: none; padding: 0; }
  nav, .skip { display: none; }
  .scroll, .card { overflow: visible; }
  .card { border: 0; padding: 0; }
  figure { width: var(--natural); }
  .card svg { min-width: 0; }
  table { font-size: 8pt; }
  figure, tr, .verdict, dl { break-inside: avoid; }
  h2, h3, caption { break-after: avoid; }
  a { text-decoration: none; }
  details::details-content { content-visibility: visible; block-size: auto; }
}
"""
