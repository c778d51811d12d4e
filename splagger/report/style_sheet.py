"""The report's style sheet, for light and dark mode and all screen widths."""

CSS = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #57606a; --line: #d0d7de; --page: #ffffff;
  --card: #f6f8fa; --link: #0550ae; --good: #116329; --bad: #a40e26; --open: #57606a; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #9aa4af; --line: #343b44;
  --page: #0d1117; --card: #161b22; --link: #79c0ff; --good: #56d364; --bad: #ff9a94; --open: #9aa4af; } }
* { box-sizing: border-box; }
html { scroll-behavior: smooth; scroll-padding-top: 1rem; }
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
body { margin: 0 auto; max-width: 76rem; padding: 0 1rem 4rem; background: var(--page); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; }
h1 { margin: 2rem 0 0.5rem; line-height: 1.2; } h2 { margin: 3rem 0 0.5rem; } h3 { margin: 2rem 0 0.25rem; }
p { max-width: 46rem; } a { color: var(--link); } code { font: 0.85em/1.45 ui-monospace, monospace;
  overflow-wrap: anywhere; } .soft, figcaption, caption { color: var(--soft); }
a:focus-visible, summary:focus-visible, .scroll:focus-visible { outline: 3px solid var(--link);
  outline-offset: 2px; border-radius: 2px; }
.skip { position: absolute; left: -99rem; } .skip:focus { left: 1rem; top: 0.5rem; }
nav ul { display: flex; flex-wrap: wrap; gap: 0.25rem 1.25rem; padding: 0; list-style: none; }
nav a { display: inline-block; padding: 0.35rem 0; }
.counts { display: flex; flex-wrap: wrap; gap: 0.75rem; padding: 0; list-style: none; }
.counts li { padding: 0.6rem 1rem; border: 1px solid var(--line); border-radius: 8px; background: var(--card); }
.counts b { display: block; font-size: 1.6rem; line-height: 1.2; }
figure { margin: 0 0 1rem; } figure img { display: block; width: 100%; max-width: 62rem; height: auto;
  padding: 0.5rem; border: 1px solid var(--line); border-radius: 8px; background: #fff; }
figure.small img { max-width: 36rem; } figure.wide img { min-width: 40rem; } figure.tall img { max-width: 72rem; } figcaption { margin-top: 0.5rem; max-width: 62rem; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: 0.9rem; }
caption { text-align: left; padding: 0.5rem 0; } th, td { padding: 0.45rem 0.75rem 0.45rem 0;
  border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
thead th { color: var(--soft); font-weight: 600; vertical-align: bottom; } tbody th { font-weight: 600; }
td ul { margin: 0; padding-left: 1rem; } .verdict { font-weight: 700; white-space: nowrap; }
.holds { color: var(--good); } .fails { color: var(--bad); } .open { color: var(--open); }
details { margin: 0.5rem 0; } summary { cursor: pointer; padding: 0.35rem 0; color: var(--link); }
pre { overflow-x: auto; padding: 0.75rem; border: 1px solid var(--line); border-radius: 8px;
  background: var(--card); white-space: pre-wrap; }
@media (max-width: 48rem) { .cards thead { position: absolute; left: -99rem; }
  .cards tr { display: block; padding: 0.75rem 0; border-bottom: 1px solid var(--line); }
  .cards th, .cards td { display: block; border: 0; padding: 0.1rem 0; }
  .cards td:not(:empty)::before { content: attr(data-label) ": "; color: var(--soft); } }
@media print { nav, .skip { display: none; } }
""".strip()
