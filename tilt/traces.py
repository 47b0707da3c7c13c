"""A trace viewer for one developer: accepts spans as Zipkin's JSON, keeps the newest traces, and shows them on a page.

    POST /api/v2/spans      add spans
    GET  /api/v2/traces     all traces as JSON
    GET  /                  the page

The viewer uses only Python's standard library, so that it runs in Weir's image.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections import OrderedDict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEPT = int(os.environ.get("TRACES_KEPT", "500"))
SPANS_IN_A_TRACE = 5000

PAGE = """<!doctype html><meta charset=utf-8><title>Weir traces</title>
<style>
 body{font:14px system-ui;margin:1rem;color:#222} h1{font-size:1.1rem} a{color:#06c}
 table{border-collapse:collapse} td,th{padding:.15rem .6rem;text-align:left;border-bottom:1px solid #eee}
 .row{display:grid;grid-template-columns:16rem 9rem 1fr;gap:.5rem;align-items:center}
 .bar{background:#7ab;height:.8rem;min-width:2px}
 .error .bar{background:#c55} small{color:#777} tr{cursor:pointer}
</style>
<h1>Weir traces <small id=count></small></h1><div id=view></div>
<script>
const ms=us=>(us/1000).toFixed(2)+' ms', view=document.getElementById('view')
const cell=(tag,text)=>{const e=document.createElement(tag);e.textContent=text;return e}
function list(traces){
 const t=document.createElement('table'),h=t.insertRow()
 for(const n of ['when','root','spans','edges','time'])h.append(cell('th',n))
 for(const spans of traces){
  const start=Math.min(...spans.map(s=>s.timestamp)),end=Math.max(...spans.map(s=>s.timestamp+s.duration))
  const root=spans.find(s=>!s.parentId)||spans[0],r=t.insertRow()
  r.append(cell('td',new Date(start/1000).toLocaleTimeString()),cell('td',root.name),cell('td',spans.length),
   cell('td',new Set(spans.map(s=>(s.localEndpoint||{}).serviceName)).size),cell('td',ms(end-start)))
  r.onclick=()=>location.hash=root.traceId
 }
 view.replaceChildren(t)
}
function one(spans){
 const start=Math.min(...spans.map(s=>s.timestamp)),end=Math.max(...spans.map(s=>s.timestamp+s.duration))
 const all=end-start||1
 const kids={},ids=new Set(spans.map(s=>s.id)),out=[cell('p','')]
 out[0].innerHTML='<a href="#">all traces</a>'
 for(const s of spans)(kids[ids.has(s.parentId)?s.parentId:'']??=[]).push(s)
 const walk=(id,depth)=>{for(const s of (kids[id]||[]).sort((a,b)=>a.timestamp-b.timestamp)){
  const row=document.createElement('div'),name=cell('span',s.name),bar=document.createElement('div')
  row.className='row'+((s.tags||{}).error?' error':'');name.style.paddingLeft=depth+'rem'
  bar.className='bar';bar.style.marginLeft=100*(s.timestamp-start)/all+'%';bar.style.width=100*s.duration/all+'%'
  row.title=JSON.stringify(s.tags||{},null,1)
  row.append(name,cell('small',ms(s.duration)+' '+((s.localEndpoint||{}).serviceName||'').slice(0,14)),bar)
  out.push(row);walk(s.id,depth+1)}}
 walk('',0);view.replaceChildren(...out)
}
async function load(){
 const traces=await (await fetch('api/v2/traces')).json(),wanted=location.hash.slice(1)
 document.getElementById('count').textContent=traces.length
 const found=traces.find(t=>t[0].traceId===wanted);found?one(found):list(traces)
}
onhashchange=load;load();setInterval(()=>{if(!location.hash.slice(1))load()},2000)
</script>"""


class Traces:
    """The newest KEPT traces. The number is limited because a pod has little memory."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._traces: OrderedDict[str, list[dict[str, Any]]] = OrderedDict()

    def add(self, spans: list[dict[str, Any]]) -> None:
        with self._lock:
            for span in spans:
                trace = self._traces.setdefault(span["traceId"], [])
                if len(trace) < SPANS_IN_A_TRACE:
                    trace.append(span)
                self._traces.move_to_end(span["traceId"])
            while len(self._traces) > KEPT:
                self._traces.popitem(last=False)

    def json(self) -> bytes:
        with self._lock:
            return json.dumps(list(reversed(self._traces.values()))).encode()


class Handler(BaseHTTPRequestHandler):
    traces: Traces

    def _answer(self, status: int, body: bytes = b"", kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        path = self.path.split("?", 1)[0]
        if path == "/api/v2/traces":
            self._answer(200, self.traces.json())
        elif path in ("/", "/health"):
            self._answer(200, PAGE.encode(), "text/html; charset=utf-8")
        else:
            self._answer(404)

    def do_POST(self) -> None:
        try:
            self.traces.add(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        except (ValueError, KeyError, TypeError):
            self._answer(400)
        else:
            self._answer(202)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: every batch of spans would be a line."""


def serve(port: int) -> ThreadingHTTPServer:
    handler = type("BoundHandler", (Handler,), {"traces": Traces()})
    return ThreadingHTTPServer(("0.0.0.0", port), handler)


if __name__ == "__main__":
    server = serve(int(sys.argv[1]) if len(sys.argv) > 1 else 9411)
    print(f"traces on port {server.server_port}", flush=True)
    server.serve_forever()
