// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/status/page_style.h"

namespace hlaunch {

// The contrast of text is at least 4.5 to 1 in both palettes. The fill colours are those of Okabe
// and Ito. Shapes or words say the same as colours.
const char kPageStyle[] =
    R"css(:root{color-scheme:light dark;--bg:#fff;--fg:#1b1d21;--soft:#f2f4f7;--line:#d3d8df;--dim:#565d66;
--good:#005a94;--wait:#835300;--bad:#ad3a00;--idle:#565d66;
--fgood:#0072b2;--fwait:#e69f00;--fcheck:#cc79a7;--fbad:#d55e00}
@media(prefers-color-scheme:dark){:root{--bg:#15171b;--fg:#e7e9ec;--soft:#20242a;--line:#3a4049;
--dim:#a9b0ba;--good:#74bdf2;--wait:#f0b64f;--bad:#ff9165;--idle:#a9b0ba;
--fgood:#56a8e0;--fwait:#e69f00;--fcheck:#d895bb;--fbad:#e8743b}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1rem 1.25rem 3rem;max-width:76rem;background:var(--bg);color:var(--fg);
font:16px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;
overflow-wrap:anywhere}
h1{font-size:1.35rem;margin:0;display:flex;flex-wrap:wrap;gap:.2rem .8rem;align-items:baseline}
h2{font-size:1rem;margin:1.6rem 0 .5rem}
p,ul{margin:.35rem 0}
ul{padding-left:1.2rem}
.state{font-size:1rem;font-weight:600;border:1px solid;border-radius:1rem;padding:0 .7rem;
white-space:nowrap}
.good{color:var(--good)}.wait{color:var(--wait)}.bad{color:var(--bad)}.idle{color:var(--idle)}
#sentence{font-size:1.15rem;margin:.5rem 0}
.dim,caption,footer{color:var(--dim);font-size:.875rem}
#stale{color:var(--bad);font-weight:600}
dl{display:flex;flex-wrap:wrap;gap:.4rem 1.8rem;margin:1rem 0 0;padding:.6rem .9rem;
background:var(--soft);border-radius:.5rem}
dt{color:var(--dim);font-size:.8rem}
dd{margin:0;font-variant-numeric:tabular-nums}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
caption{text-align:left;padding-bottom:.3rem}
th,td{text-align:left;vertical-align:top;padding:.28rem .7rem .28rem 0;
border-bottom:1px solid var(--line)}
thead th{color:var(--dim);font-size:.8rem;font-weight:600;white-space:nowrap}
tbody th{font-weight:600;white-space:nowrap}
.short{white-space:nowrap}
.bar{width:32%;min-width:8rem}
svg{display:block;width:100%;height:1.1rem;background:var(--soft)}
.gathering{fill:var(--fwait)}.checking{fill:var(--fcheck)}.running{fill:var(--fgood)}
.stopping{fill:var(--fbad)}
.key{display:inline-flex;gap:.35rem;align-items:center;margin-right:1rem}
.key svg{width:1.1rem;height:.8rem}
.cells{font:.875rem/1.5 ui-monospace,"DejaVu Sans Mono",monospace;letter-spacing:.12em}
.cells b{color:var(--bad)}
details{border-bottom:1px solid var(--line);padding:.4rem 0}
summary{cursor:pointer}
pre{margin:.4rem 0;padding:.7rem .9rem;background:var(--soft);border-radius:.5rem;overflow:auto;
max-height:28rem;font:.8125rem/1.45 ui-monospace,"DejaVu Sans Mono",monospace;white-space:pre-wrap}
code{font:.875rem ui-monospace,"DejaVu Sans Mono",monospace}
a{color:var(--good)}
:focus-visible{outline:3px solid var(--fwait);outline-offset:2px}
footer{margin-top:2rem}
@media(max-width:44rem){
body{padding:.8rem .8rem 2rem}
dl{display:grid;grid-template-columns:1fr 1fr;gap:.5rem 1rem}
.wide{grid-column:1/-1}
table,caption,tbody,td,tbody th{display:block;width:auto}
thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
tr{display:flex;flex-wrap:wrap;gap:0 .9rem;border-bottom:1px solid var(--line);padding:.45rem 0}
td,tbody th{border:0;padding:.05rem 0}
td[data-is]::before{content:attr(data-is) " ";color:var(--dim);font-size:.8rem}
td:empty{display:none}
.bar{flex:1 0 70%;min-width:0;padding:.3rem 0}}
)css";

// Fetches the same page and takes over what has changed; rows that are open stay open. The answer
// is parsed as a document of its own, in which no script runs.
const char kPageScript[] = R"js((()=>{"use strict";const every=2000;let heard=Date.now();
const by=id=>document.getElementById(id);
function take(page){const open=[...document.querySelectorAll("details[open]")].map(e=>e.id);
const focus=document.activeElement&&document.activeElement.id;
for(const id of ["head","main"]){const was=by(id),is=page.getElementById(id);
if(!was||!is||was.isEqualNode(is))continue;
if(id==="main")for(const one of open){const e=page.getElementById(one);if(e)e.open=true}
was.replaceWith(document.adoptNode(is))}
if(focus&&by(focus)&&document.activeElement!==by(focus))by(focus).focus({preventScroll:true});
document.title=page.title}
async function turn(){try{if(!document.hidden){
const answer=await fetch(location.pathname,{cache:"no-store",credentials:"same-origin"});
if(!answer.ok)throw new Error(answer.status);
const page=new DOMParser().parseFromString(await answer.text(),"text/html");
heard=Date.now();if(String(getSelection())==="")take(page)}}catch(error){}
const silent=Math.round((Date.now()-heard)/1000);
by("stale").textContent=silent>5&&!document.hidden?"Nothing heard for "+silent+" s: what follows is old.":"";
setTimeout(turn,every)}
document.addEventListener("visibilitychange",()=>{heard=Date.now()});
setTimeout(turn,every)})();
)js";

// The hashes of the two above. A test tells what they must be.
const char kPageStyleHash[] = "sha256-kt/+XZOwqhXD02ClX60NKYpzoePOepWykUI+74Bg2iU=";
const char kPageScriptHash[] = "sha256-ivXf7Vypj/yhqfU7ilxXbNBqCKOichckjE6NcN9O5oQ=";

}  // namespace hlaunch
