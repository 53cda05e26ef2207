"""The frame of every page: its head, its style, its content security policy, and the script that keeps a
served page up to date.

A page may load nothing. The policy allows its style and its script by their hashes, so that any injected
script or style has no effect. There are no `style` attributes, which such a policy forbids: colours are
classes.
"""

from base64 import b64encode
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from html import escape

from prime_train.pages.charts.svg import ATTEMPT_COLOURS, PART_COLOURS
from prime_train.pages.charts.svg import STYLE as SVG_STYLE

_COLOURS = "\n".join(
    [f".a{place} {{ background: {colour}; }}" for place, colour in enumerate(ATTEMPT_COLOURS)]
    + [f".p-{name} {{ background: {colour}; }}" for name, colour in PART_COLOURS.items()]
)

STYLE = (
    """
:root { color-scheme: light dark; --bg: #ffffff; --panel: #f6f7f9; --ink: #1b2230; --soft: #5b6678; --line: #d9dee7; --link: #1f5fc9; }
:root { --good: #1c7a54; --bad: #b93a35; --warn: #96610a; --live: #2762c4; }
@media (prefers-color-scheme: dark) { :root { --bg: #12161e; --panel: #1a202b; --ink: #e8ecf3; --soft: #9fa9bb; --line: #303949; } }
@media (prefers-color-scheme: dark) { :root { --link: #86b0ff; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--bg); color: var(--ink); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 1200px; margin: 24px auto 60px; padding: 0 20px; }
nav { font-size: 14px; margin: 0 0 14px; } a { color: var(--link); }
h1 { font-size: 26px; line-height: 1.25; margin: 0 0 6px; overflow-wrap: anywhere; } h2 { font-size: 18px; margin: 34px 0 10px; }
h3 { font-size: 15px; margin: 0 0 2px; }
p { margin: 0 0 8px; overflow-wrap: anywhere; } p.why { margin: 0 0 18px; color: var(--soft); } .soft { color: var(--soft); }
.pill { display: inline-block; font-size: 14px; font-weight: 600; line-height: 1.4; padding: 2px 11px; border-radius: 99px; color: #fff; }
.pill { background: #5b6678; vertical-align: 4px; margin-left: 8px; white-space: nowrap; } td .pill { margin: 0; vertical-align: 0; }
.pill.good { background: var(--good); } .pill.bad { background: var(--bad); }
.pill.warn { background: var(--warn); } .pill.live { background: var(--live); }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px; margin: 0 0 22px; }
.card { background: var(--panel); border-radius: 10px; padding: 12px 16px; min-width: 0; }
.card b { display: block; font-size: 21px; line-height: 1.3; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.card span { color: var(--soft); font-size: 13px; }
.found { background: var(--panel); border-left: 4px solid var(--line); border-radius: 4px 10px 10px 4px; }
.found { padding: 10px 16px; margin: 0 0 10px; }
p.alert { border-left: 4px solid var(--warn); padding: 4px 12px; margin: 0 0 18px; }
.found.first { border-left-color: var(--live); } .found p { margin: 0; }
svg.pt-svg { width: 100%; height: auto; display: block; }
.narrow { display: none; }
.curves { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 20px; }
figure { margin: 0; min-width: 0; } figcaption { font-size: 14px; font-weight: 600; margin: 0 0 4px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th { text-align: left; color: var(--soft); font-weight: 600; white-space: nowrap; }
th, td { padding: 6px 20px 6px 0; border-bottom: 1px solid var(--line); vertical-align: top; } td { overflow-wrap: break-word; }
th:last-child, td:last-child { padding-right: 0; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; } tr.sum td { font-weight: 600; }
.dot { display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin-right: 8px; vertical-align: -1px; }
td.kind { white-space: nowrap; } td.text { min-width: 180px; }
code, pre { font: 13px/1.45 ui-monospace, "SF Mono", Menlo, Consolas, monospace; } code { overflow-wrap: anywhere; }
.log { display: flex; flex-direction: column-reverse; max-height: 420px; overflow: auto; background: var(--panel); border-radius: 10px; }
.log.whole { max-height: none; } .steps-of { font-size: 13px; margin: 4px 0 0; padding-left: 22px; }
#part-conclusions td:last-child { overflow-wrap: anywhere; }
.log pre { margin: 0; padding: 12px 16px; white-space: pre-wrap; overflow-wrap: anywhere; }
.stale { background: var(--warn); color: #fff; border-radius: 8px; padding: 8px 14px; margin: 0 0 14px; }
footer { color: var(--soft); font-size: 13px; margin-top: 34px; }
@media (max-width: 760px) {
  main { margin-top: 16px; padding: 0 14px; } h1 { font-size: 22px; } h2 { margin-top: 28px; }
  .narrow { display: block; } .broad { display: none; }
  .curves { grid-template-columns: minmax(0, 1fr); }
  .cards { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 8px; } .card { padding: 9px 12px; } .card b { font-size: 18px; }
  th, td { padding-right: 14px; }
  #part-ledger th:nth-child(2), #part-ledger td:nth-child(2) { display: none; }
  #part-history thead { display: none; } #part-history tr { display: flex; flex-wrap: wrap; border-bottom: 1px solid var(--line); }
  #part-history td { border: 0; padding: 2px 12px 2px 0; }
  #part-history td:last-child { flex-basis: 100%; min-width: 0; overflow-wrap: anywhere; }
}
"""
    + _COLOURS
    + "\n"
)

SCRIPT = """
"use strict";
(() => {
  const said = document.documentElement.dataset, stale = document.getElementById("stale");
  let busy = false, again = false;
  const isRead = (old) => { const s = getSelection(); return s && !s.isCollapsed && old.contains(s.anchorNode); };
  const places = (part) => part.querySelectorAll(".wide, .log");
  function replace(old, fresh) {
    const before = [...places(old)].map((place) => [place.scrollLeft, place.scrollTop]);
    old.replaceWith(fresh);
    places(fresh).forEach((place, n) => { if (before[n]) [place.scrollLeft, place.scrollTop] = before[n]; });
  }
  async function refresh() {
    if (busy) { again = true; return; }
    busy = true;
    try {
      const answer = await fetch(location.href, { cache: "no-store" });
      if (!answer.ok) throw new Error(answer.status);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const fresh of page.querySelectorAll("[data-part]")) {
        const old = document.getElementById(fresh.id);
        if (old && old.innerHTML !== fresh.innerHTML && !isRead(old)) replace(old, document.adoptNode(fresh));
      }
      document.title = page.title;
      stale.hidden = true;
    } catch (error) { stale.hidden = false; }
    busy = false;
    if (again) { again = false; refresh(); }
  }
  const poll = () => setInterval(refresh, 1000 * said.everyS);
  if (!said.events) { poll(); return; }
  const source = new EventSource(said.events);
  source.addEventListener("changed", refresh);
  source.onopen = () => { stale.hidden = true; };
  source.onerror = () => {
    stale.hidden = false;
    if (source.readyState === EventSource.CLOSED) poll();
  };
})();
"""


@dataclass(frozen=True)
class Live:
    """How a served page stays up to date: it is fetched again whenever the event stream at `events` (an
    address relative to the page) reports a change or, if `events` is empty or the stream is not available,
    every `every_s` seconds. Without scripts the browser reloads the page at that interval.
    """

    events: str
    every_s: int


def document(title: str, body: str, live: Live | None = None) -> str:
    """Return the complete page; `body` is HTML. `live`: how a served page stays up to date; None for a
    file.
    """
    head = [
        "<meta charset='utf-8'><meta name='viewport' content='width=device-width, initial-scale=1'>",
        "<meta http-equiv='Content-Security-Policy' "
        f'content="{content_policy(is_served=live is not None)}">',
        "<meta name='referrer' content='no-referrer'>",
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
    ]
    if live is None:
        opening, stale, script = "<html lang='en'>", "", ""
    else:
        # Else a browser asks for an icon, which there is none of.
        head.append("<link rel='icon' href='data:,'>")
        head.append(f"<noscript><meta http-equiv='refresh' content='{live.every_s}'></noscript>")
        opening = f"<html lang='en' data-events='{escape(live.events)}' data-every-s='{live.every_s}'>"
        stale = (
            "<p id=stale class=stale hidden>This page is out of date because the control plane does not "
            "answer. Reload the page.</p>"
        )
        script = f"<script>{SCRIPT}</script>"
    return f"<!doctype html>{opening}<head>{''.join(head)}</head><body><main>{stale}{body}</main>{script}</body></html>\n"


def notice_html(title: str, text: str, *, leads_to: str = "", command: str = "") -> str:
    """Return a page with a short message. `leads_to`: address to which the browser goes at once, relative to
    the page. `command`: a command to show.
    """
    way = f"<meta http-equiv='refresh' content='0;url={escape(leads_to)}'>" if leads_to else ""
    link = f" <a href='{escape(leads_to)}'>Continue</a>" if leads_to else ""
    typed = f"<div class=log><pre>{escape(command)}</pre></div>" if command else ""
    page = document(title, f"<h1>{escape(title)}</h1><p>{escape(text)}{link}</p>{typed}")
    return page.replace("<title>", f"{way}<title>", 1)


def content_policy(*, is_served: bool) -> str:
    """Return the content security policy of a page: it may use its own styles and, if it is served, run the
    one script and send requests to its server.
    """
    styles = (
        f"default-src 'none'; style-src {_hash(STYLE)} {_hash(SVG_STYLE)}; base-uri "
        "'none'; form-action 'none'"
    )
    return f"{styles}; script-src {_hash(SCRIPT)}; connect-src 'self'; img-src data:" if is_served else styles


@cache
def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
