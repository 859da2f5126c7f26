"use strict";
// A kernel's rows (SASS) tie everything together: each names its source line, its PTX line, its IR line. A spot (a line
// the reader is at) selects rows; the rows give every line a tone: 2 is kin, 1 is far kin (through inlining), 0 neither.
(() => {
  const $ = (what, where = document) => where.querySelector(what);
  const all = (what, where = document) => [...where.querySelectorAll(what)];
  const data = id => JSON.parse(document.getElementById(id).textContent);
  const escaped = text => text.replace(/[&<>"]/g, c => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
  const many = (n, one, more = one + "s") => `${grouped(n)} ${n === 1 ? one : more}`;
  const grouped = n => String(n).replace(/\B(?=(\d{3})+$)/g, "\u202f");
  const hex = n => n.toString(16).padStart(4, "0");
  const root = document.documentElement;
  const LINE = 18, OVER = 24;         // pixels of a line, as code.css has it; lines drawn beyond what is seen
  const NONE = Object.freeze([]);
  const TEXTS = data("texts"), COLOURS = data("colours");
  const texts = TEXTS.map(() => null);
  const lines = number => texts[number] ??= TEXTS[number].replace(/\n$/, "").split("\n");

  // ---- colouring of text: one regular expression a language, its groups named as the classes of code.css
  const words = text => `\\b(?:${text.split(" ").join("|")})\\b`;
  const NUMBER = String.raw`\b(?:0[xX][\da-fA-F]+|\d+\.?\d*(?:[eE][-+]?\d+)?)[uUlLfF]*\b`;
  const STRING = String.raw`"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?`;
  const LANGUAGES = {
    cpp: { body: new RegExp(String.raw`(?<c>\/\/.*|\/\*.*?(?:\*\/|$))|(?<s>${STRING})|(?<k>^\s*#\s*\w+|` + words("alignas asm auto break case const constexpr continue default delete do else enum extern for if inline namespace new operator return sizeof static static_cast reinterpret_cast struct switch template this typedef typename union using volatile while true false nullptr __global__ __device__ __host__ __shared__ __constant__ __forceinline__ __noinline__ __restrict__ __launch_bounds__ __grid_constant__") + `)|(?<y>` + words("void bool char short int long float double half unsigned signed size_t u?int(?:8|16|32|64)_t float[234] half2 u?int[234] uint __half2? __nv_bfloat16[2]?") + String.raw`)|(?<n>${NUMBER})|(?<f>\b[A-Za-z_]\w*(?=\s*\())`, "g") },
    python: { body: new RegExp(String.raw`(?<c>#.*)|(?<s>[rbfRBF]{0,2}(?:"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)|${STRING}))|(?<y>@[\w.]+)|(?<k>` + words("and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield None True False") + String.raw`)|(?<n>${NUMBER})|(?<f>\b[A-Za-z_]\w*(?=\s*\())`, "g") },
    ptx: { head: /^\s*(?<k>@!?%\w+\s+)?(?<o>[a-z]\w*)(?<m>(?:\.\w+|::\w+)*)(?=\s|;)/d, body: /(?<c>\/\/.*)|(?<s>"[^"]*")|(?<k>^\s*\.[a-z]\w*)|(?<f>\$\w+)|(?<m>\.[a-z]\w*)|(?<d>%\w+)|(?<n>\b(?:0[fdxFDX][\da-fA-F]+|\d+)\b)/g },
    sass: { head: /^(?<k>@!?U?P\w+\s+)?(?<o>[A-Z][A-Z0-9_]*)(?<m>(?:\.\w+)*)/d, body: /(?<f>`\([^)]*\))|(?<y>c\[[^\]]*\](?:\[[^\]]*\])?|desc|SR_[\w.]+)|(?<n>[-+]?\b(?:0x[\da-f]+|\d+(?:\.\d+)?(?:e[-+]?\d+)?)\b|[-+]?(?:INF|QNAN))|(?<d>\.(?:reuse|64|H[01]_H[01]|[A-Z]\w*)\b)/g },
    mlir: { body: /(?<c>\/\/.*|\bloc\([^()]*(?:\([^()]*\))*[^()]*\))|(?<s>"(?:\\.|[^"\\])*")|(?<d>%[\w#:]+|\^\w+)|(?<y>![\w.]+|#[\w.]+|\b(?:tensor|memref|vector|index|bf16|f(?:8|16|32|64)|i\d+)\b)|(?<k>\b(?:module|func|public|private|attributes|return|to|step|iter_args|else|dense|true|false)\b)|(?<o>\b[a-z_]+(?:\.[a-z_]+)+)|(?<n>\b(?:0x[\da-fA-F]+|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\b)|(?<f>@\w+)/g },
  };
  const language = file => /\.py$/.test(file) ? "python" : "cpp";

  function tokens(text, name) {
    const found = [], { head, body } = LANGUAGES[name];
    let from = 0;
    const first = head && head.exec(text);
    if (first) {
      for (const [kind, span] of Object.entries(first.indices.groups)) if (span && span[1] > span[0]) found.push([...span, kind]);
      from = first[0].length;
    }
    body.lastIndex = from;
    for (let m; (m = body.exec(text));) {
      if (!m[0]) { body.lastIndex++; continue; }
      for (const kind in m.groups) if (m.groups[kind] !== undefined) { found.push([m.index, m.index + m[0].length, kind]); break; }
    }
    return found;
  }

  /** Lines that begin inside a comment or a long string. */
  function insides(list, name) {
    const inside = new Uint8Array(list.length);
    const opens = name === "python" ? /"""|'''/g : name === "cpp" ? /\/\/.*|"(?:\\.|[^"\\])*"|\/\*|\*\//g : null;
    if (!opens) return inside;
    let open = "";
    list.forEach((text, i) => {
      inside[i] = open ? 1 : 0;
      for (const [m] of text.matchAll(opens)) {
        if (name === "python") open = open ? (open === m ? "" : open) : m;
        else if (m === "/*") open = m;
        else if (m === "*/") open = "";
      }
    });
    return inside;
  }

  /** A line as HTML: tokens as spans, what the search found as marks. */
  function painted(text, name, inside = 0) {
    let spans;
    if (inside) {
      const end = text.search(name === "python" ? /"""|'''/ : /\*\//), to = end < 0 ? text.length : end + (name === "python" ? 3 : 2);
      spans = [[0, to, name === "python" ? "s" : "c"], ...tokens(text.slice(to), name).map(([a, b, k]) => [a + to, b + to, k])];
    } else spans = tokens(text, name);
    const marks = ranges(text);
    if (!marks.length) {
      let html = "", at = 0;
      for (const [a, b, kind] of spans) { html += escaped(text.slice(at, a)) + `<span class="${kind}">${escaped(text.slice(a, b))}</span>`; at = b; }
      return html + escaped(text.slice(at));
    }
    const cuts = [...new Set([0, text.length, ...spans.flatMap(s => s.slice(0, 2)), ...marks.flat()])].sort((a, b) => a - b);
    let html = "";
    for (let i = 0; i + 1 < cuts.length; i++) {
      const [a, b] = [cuts[i], cuts[i + 1]], kind = spans.find(s => s[0] <= a && b <= s[1])?.[2];
      let part = escaped(text.slice(a, b));
      if (kind) part = `<span class="${kind}">${part}</span>`;
      html += marks.some(m => m[0] <= a && b <= m[1]) ? `<mark>${part}</mark>` : part;
    }
    return html;
  }

  // ---- the kernel that is shown, and where the reader is
  let K = null;                        // the kernel and its indices
  let spot = null, pin = null;         // lines: { pane, file, line } | { pane: "sass", row | block }
  let steps = NONE, at = 0, aim = null; // kin of the pin, which of them, and that one
  let query = null, hits = NONE, hit = -1;
  const kept = new Map();

  const same = (a, b) => a === b || Boolean(a && b && a.pane === b.pane && a.file === b.file && a.line === b.line && a.row === b.row && a.block === b.block);
  const key = (file, line) => file * 16777216 + line;

  function index(kernel) {
    const { columns: C } = kernel, size = C.address.length;
    const put = (map, k, v) => { const list = map.get(k); if (list) list.push(v); else map.set(k, [v]); };
    const rowsOf = kernel.places.map(() => []), ptx = new Map(), ir = new Map(), near = new Map(), far = new Map();
    for (let r = 0; r < size; r++) {
      if (C.place[r] >= 0) rowsOf[C.place[r]].push(r);
      if (C.ptx[r]) put(ptx, C.ptx[r], r);
      if (C.ir[r]) put(ir, C.ir[r], r);
    }
    kernel.places.forEach(([file, line, chain], p) => {
      put(near, key(file, line), p);
      for (const k of new Set(chain.map(c => key(...c)))) if (k !== key(file, line)) put(far, k, p);
    });
    const blocks = [], blockOf = new Int32Array(size), byNumber = new Map();
    const told = new Map(kernel.blocks.map(b => [b.number, b]));
    for (let r = 0; r < size; r++) {
      if (!r || C.block[r] !== C.block[r - 1]) {
        const number = C.block[r], known = told.get(number) || {};
        if (!byNumber.has(number)) byNumber.set(number, blocks.length);
        blocks.push({ number, first: r, end: r, stalls: 0, depth: known.loop_depth ?? C.depth[r], follows: [...new Set(known.follows || NONE)], folded: false });
      }
      const block = blocks.at(-1);
      block.end = r + 1; block.stalls += C.stall[r]; blockOf[r] = blocks.length - 1;
    }
    const source = kernel.sources.map((number, f) => { const list = lines(number), name = language(kernel.files[f]); return { list, name, inside: insides(list, name) }; });
    const text = number => { const list = number === null ? NONE : lines(number); return { list }; };
    const longest = list => list.reduce((most, line) => Math.max(most, line.length + 3 * (line.split("\t").length - 1)), 0);
    const made = Object.assign(kernel, {
      size, rowsOf, rows: { ptx, ir }, near, far, runs: blocks, blockOf, byNumber, longest,
      panes: { source, ptx: { ...text(kernel.ptx), name: "ptx" }, ir: { ...text(kernel.ir), name: "mlir" } },
      labels: [...new Set(Object.values(kernel.figures).flatMap(f => Object.keys(f)))],
    });
    made.tone = {
      source: source.map(s => new Uint8Array(s.list.length + 1)), ptx: new Uint8Array(made.panes.ptx.list.length + 1),
      ir: new Uint8Array(made.panes.ir.list.length + 1), sass: new Uint8Array(size), block: new Uint8Array(blocks.length),
    };
    return made;
  }

  const joined = lists => lists.length === 1 ? lists[0] : lists.flat().sort((a, b) => a - b);
  /** Rows of a line: its own, and those that came by inlining. */
  function rowsAt(where) {
    if (!where) return [NONE, NONE];
    if (where.block !== undefined) { const b = K.runs[where.block]; return [Array.from({ length: b.end - b.first }, (_, i) => b.first + i), NONE]; }
    if (where.pane === "sass") return [[where.row], NONE];
    if (where.pane !== "source") return [K.rows[where.pane].get(where.line) || NONE, NONE];
    const k = key(where.file, where.line);
    return [K.near.get(k), K.far.get(k)].map(places => places ? joined(places.map(p => K.rowsOf[p])) : NONE);
  }

  // ---- light: tones of every line
  let lit = null;
  function light(where, again = false) {
    if (!again && same(where, lit)) return;
    lit = where;
    const { tone, columns: C, places } = K;
    for (const t of [...tone.source, tone.ptx, tone.ir, tone.sass, tone.block]) t.fill(0);
    const [own, inlined] = rowsAt(where);
    const raise = (list, i, to) => { if (list && list[i] < to) list[i] = to; };
    const spread = (rows, to) => {
      const seen = new Set();
      for (const r of rows) {
        tone.sass[r] = to;
        raise(tone.block, K.blockOf[r], to);
        if (C.ptx[r]) raise(tone.ptx, C.ptx[r], to);
        if (C.ir[r]) raise(tone.ir, C.ir[r], to);
        seen.add(C.place[r]);
      }
      for (const p of seen) if (p >= 0) {
        raise(tone.source[places[p][0]], places[p][1], to);
        for (const [file, line] of places[p][2]) raise(tone.source[file], line, 1);
      }
    };
    spread(inlined, 1); spread(own, 2);
    if (where && where.line && (own.length || inlined.length)) raise(where.pane === "source" ? tone.source[where.file] : tone[where.pane], where.line, 2);
    for (const pane of PANES) { pane.dress(); pane.rule(); }
    tabs.forEach((tab, f) => { const most = f === file ? 0 : tone.source[f].reduce((a, b) => a > b ? a : b, 0); tab.className = ["", "far", "kin"][most]; });
    dressFlow();
    say(where, own, inlined);
  }

  const short = f => K.short[f] ?? K.files[f].split("/").at(-1);
  function say(where, own, inlined) {
    const parts = [], name = document.createElement("b");
    if (where) {
      const { tone, columns: C } = K, kin = list => list.reduce((n, t) => n + (t === 2), 0);
      if (where.block !== undefined) { name.textContent = `Block ${K.runs[where.block].number}`; parts.push(many(own.length, "instruction")); }
      else if (where.pane === "sass") {
        const r = where.row, place = K.places[C.place[r]];
        name.textContent = `${hex(C.address[r])}  ${C.text[r]}`;
        if (place) parts.push(`${short(place[0])}:${place[1]}` + place[2].map(([f, l]) => `, inlined at ${short(f)}:${l}`).join(""));
        if (C.ir[r]) parts.push(`${K.ir_kind.toUpperCase()} ${C.ir[r]}`);
        if (C.ptx[r]) parts.push(`PTX ${C.ptx[r]}`);
        const about = [K.spaces[C.space[r]], C.width[r] && `${C.width[r]} bits`, C.live[r] !== null && `${C.live[r]} live registers`].filter(Boolean);
        if (about.length) parts.push(about.join(", "));
      } else {
        name.textContent = where.pane === "source" ? `${short(where.file)}:${where.line}` : `${where.pane === "ir" ? K.ir_kind.toUpperCase() : "PTX"} ${where.line}`;
        if (own.length) parts.push(`${grouped(own.length)} SASS`);
        if (inlined.length) parts.push(`${grouped(inlined.length)} SASS of what is inlined here`);
        for (const [pane, title] of [["ir", K.ir_kind.toUpperCase()], ["ptx", "PTX"]]) if (where.pane !== pane && kin(tone[pane])) parts.push(`${grouped(kin(tone[pane]))} ${title}`);
        if (where.pane === "source") {
          const calls = new Set((K.near.get(key(where.file, where.line)) || NONE).flatMap(p => K.places[p][2].map(c => key(...c)))).size;
          if (calls) parts.push(many(calls, "call site"));
        } else { const n = tone.source.reduce((sum, t) => sum + kin(t), 0); if (n) parts.push(many(n, "source line")); }
        if (!own.length && !inlined.length) parts.push("no instruction comes from this line");
      }
    }
    const says = $("#says");
    if (!where) says.textContent = "Hover a line to see its kin, click to pin it; ? shows the keys.";
    else says.replaceChildren(name, document.createTextNode(parts.join(" · ")));
  }

  // Lines that scroll away under a mouse at rest are not hovered, unless its wheel turned them.
  let mouse = {};
  document.addEventListener("pointermove", event => { mouse = { x: event.screenX, y: event.screenY }; }, { passive: true });
  document.addEventListener("wheel", () => { mouse = {}; }, { passive: true });

  // ---- panes: only the lines in view are in the page
  class Pane {
    constructor(name, model) {
      this.name = name; this.model = model; this.el = document.getElementById(name);
      this.scroll = $(".scroll", this.el); this.sheet = $(".sheet", this.el); this.holder = $(".lines", this.el); this.ruler = $(".ruler", this.el);
      this.first = this.last = 0; this.cursor = -1; this.height = 0; this.rows = NONE;
      this.above = $(".titles", this.el) ? 22 : 0;
      this.scroll.addEventListener("scroll", () => { this.due ||= requestAnimationFrame(() => { this.due = 0; this.draw(); }); }, { passive: true });
      new ResizeObserver(() => { this.height = this.scroll.clientHeight; this.draw(); this.rule(); }).observe(this.scroll);
      this.holder.addEventListener("pointerover", e => this.hover(e));
      this.holder.addEventListener("click", e => this.click(e));
      this.scroll.addEventListener("pointerleave", () => { if (!pin) { spot = null; light(null); } });
      this.scroll.addEventListener("focus", () => { if (this.scroll.matches(":focus-visible")) this.to(this.cursor < 0 ? this.top() : this.cursor); });
      this.scroll.addEventListener("blur", () => this.dress());
    }
    get shown() { return !this.el.hidden; }
    get size() { return this.model.size(); }
    top() { return Math.min(this.size - 1, Math.ceil(this.scroll.scrollTop / LINE)); }
    reset(width) {
      this.sheet.style.height = `${this.size * LINE}px`;
      this.sheet.style.width = width;
      this.cursor = -1; this.scroll.scrollTop = this.scroll.scrollLeft = 0; this.scroll.removeAttribute("aria-activedescendant");
      this.draw(true);
    }
    draw(again = false) {
      if (!this.shown || !K) return;
      const from = Math.floor(this.scroll.scrollTop / LINE), to = Math.min(this.size, from + Math.ceil((this.height || this.scroll.clientHeight) / LINE) + 1);
      if (!again && from >= this.first && to <= this.last) return;
      this.first = Math.max(0, Math.min(from, this.size) - OVER); this.last = Math.min(this.size, to + OVER);
      let html = "";
      for (let i = this.first; i < this.last; i++) html += this.model.html(i);
      this.holder.style.top = `${this.first * LINE}px`;
      this.holder.innerHTML = html;
      this.rows = [...this.holder.children];
      for (const row of this.rows) row.base = row.now = row.className;
      this.dress();
    }
    dress() {
      const held = this.scroll.matches(":focus-visible");
      const is = [[spot, pin && same(spot, pin) ? " at pin" : " at"], [aim, " step"], [hits[hit], " found"]].map(([where, name]) => [this.item(where), name]);
      this.rows.forEach((row, n) => {
        const i = this.first + n;
        let name = row.base + ["", " far", " kin"][this.model.tone(i)];
        for (const [item, more] of is) if (item === i) name += more;
        if (held && i === this.cursor) name += " cursor";
        if (row.now !== name) { row.className = row.now = name; row.setAttribute("aria-selected", String(name.includes(" pin"))); }
      });
    }
    item(where) { return where && where.pane === this.name ? this.model.item(where) : -1; }
    /** Where kin lie in the whole of the pane, at its right edge. */
    rule() {
      if (!this.shown || !this.height) return;
      const ratio = devicePixelRatio || 1, high = Math.round(this.height * ratio), paint = this.ruler.getContext("2d");
      if (this.ruler.height !== high) { this.ruler.width = 6 * ratio; this.ruler.height = high; } else paint.clearRect(0, 0, 6 * ratio, high);
      if (!lit && !hits.length) return;
      const total = Math.max(this.size * LINE, this.height - this.above), scale = high / total * LINE, tall = Math.max(2 * ratio, Math.min(scale, 8));
      const skip = this.above * ratio * (1 - scale * this.size / Math.max(high, 1));
      const ticks = [null, [], []], size = this.size;
      for (let i = 0; i < size; i++) { const tone = this.model.tone(i); if (tone) { const y = Math.floor(i * scale + skip); if (ticks[tone].at(-1) !== y) ticks[tone].push(y); } }
      for (const [tone, colour] of [[1, "--far-bar"], [2, "--kin-bar"]]) { paint.fillStyle = skins[colour]; for (const y of ticks[tone]) paint.fillRect(0, y, 6 * ratio, tall); }
      paint.fillStyle = skins["--mark-now"];
      for (const h of hits) { const i = this.item(h); if (i >= 0) paint.fillRect(3 * ratio, i * scale + skip, 3 * ratio, tall); }
    }
    reveal(i) {
      if (i < 0 || !this.shown) return;
      const room = this.height - this.above, y = i * LINE;
      if (y < this.scroll.scrollTop + LINE || y + 2 * LINE > this.scroll.scrollTop + room) this.scroll.scrollTop = Math.round(y - room / 2 + LINE / 2);
      this.draw();
    }
    hover(event) {
      const row = event.target.closest(".l");
      if (!row || pin || (event.isTrusted && event.screenX === mouse.x && event.screenY === mouse.y)) return;
      spot = this.model.where(Number(row.dataset.i));
      light(spot);
    }
    click(event) {
      const row = event.target.closest(".l");
      if (!row || !getSelection().isCollapsed) return;
      this.cursor = Number(row.dataset.i);
      this.press();
    }
    /** Pin the line at the cursor, or fold the block. */
    press() {
      const where = this.model.where(this.cursor);
      if (!where) return;
      if (where.block !== undefined) fold(where.block);
      else if (same(where, pin)) unpin();
      else fix(where);
    }
    to(i) {
      if (!this.size) return;
      this.cursor = Math.max(0, Math.min(this.size - 1, i));
      this.reveal(this.cursor);
      this.scroll.setAttribute("aria-activedescendant", `${this.name}-${this.cursor}`);
      if (pin) this.dress(); else { spot = this.model.where(this.cursor); light(spot, true); }
    }
  }

  // A line of text with its number and how many instructions come of it.
  const lineOf = (pane, i, count, body, far = false) =>
    `<div class="l${count ? " has" : ""}" role="option" aria-selected="false" id="${pane}-${i}" data-i="${i}" data-line="${i + 1}"><span class="g" style="width:${S.gutter[pane]}">${i + 1}<i class="${count ? far ? "far" : "" : "no"}" title="${many(count, "instruction")}${far ? " inlined here" : ""}">${count}</i></span><span class="t">${body || " "}</span></div>`;
  const S = { gutter: {} };
  let file = 0, tabs = [];
  const count = (pane, line) => K.rows[pane].get(line)?.length || 0;
  const textModel = name => ({
    size: () => K.panes[name].list.length,
    tone: i => K.tone[name][i + 1],
    where: i => i < 0 ? null : ({ pane: name, line: i + 1 }),
    item: where => where.line - 1,
    html: i => lineOf(name, i, count(name, i + 1), painted(K.panes[name].list[i], K.panes[name].name)),
  });
  const number = (map, k) => (map.get(k) || NONE).reduce((n, p) => n + K.rowsOf[p].length, 0);
  const sourceModel = {
    size: () => K.panes.source[file]?.list.length || 0,
    tone: i => K.tone.source[file][i + 1],
    where: i => i < 0 ? null : ({ pane: "source", file, line: i + 1 }),
    item: where => where.file === file ? where.line - 1 : -1,
    html: i => {
      const text = K.panes.source[file], own = number(K.near, key(file, i + 1)), far = own ? 0 : number(K.far, key(file, i + 1));
      return lineOf("source", i, own || far, painted(text.list[i], text.name, text.inside[i]), !own);
    },
  };

  // ---- SASS: blocks and rows; its columns; its colours
  let items = new Int32Array(0), itemOf = new Int32Array(0);   // row ≥ 0, block −1 − b; row → item
  function lay() {
    const list = [];
    itemOf = new Int32Array(K.size);
    K.runs.forEach((block, b) => {
      list.push(-1 - b);
      for (let r = block.first; r < block.end; r++) { itemOf[r] = block.folded ? list.length - 1 : list.length; if (!block.folded) list.push(r); }
    });
    items = Int32Array.from(list);
  }
  const SPACES = n => n === null || n === undefined ? "" : n;
  const shownFigure = v => typeof v !== "number" ? SPACES(v) : Number.isInteger(v) ? grouped(v) : String(Number(v.toPrecision(4)));
  const bits = (mask, size) => Array.from({ length: size }, (_, i) => mask >> i & 1 ? i : " ").join("");
  const COLUMNS = [
    { group: "control", title: "waits", name: "waits", tip: "Barriers it waits for", cell: r => bits(K.columns.waits[r], 6) },
    { group: "control", title: "sets", name: "set", tip: "Barrier freed when operands are read (R), when the result is written (W)", cell: r => (K.columns.read[r] === null ? "   " : `R${K.columns.read[r]} `) + (K.columns.write[r] === null ? "" : `W${K.columns.write[r]}`) },
    { group: "control", title: "y", name: "yield", tip: "May yield to another warp", cell: r => K.columns.yields[r] ? "Y" : "" },
    { group: "control", title: "stall", name: "stall", tip: "Cycles before the warp's next instruction", cell: r => K.columns.stall[r] },
    { group: "reuse", title: "reuse", name: "reuse", tip: "Operand slots kept in the reuse cache", cell: r => bits(K.columns.reuse[r], 4) },
    { group: "pipe", title: "pipe", name: "pipe", tip: "Execution pipe", cell: r => escaped(K.pipes[K.columns.pipe[r]]) },
    { group: "width", title: "bits", name: "width", tip: "Bits each thread moves", cell: r => SPACES(K.columns.width[r]) },
    { group: "live registers", title: "live", name: "live", tip: "Registers live before it", cell: r => SPACES(K.columns.live[r]) },
    { group: "encoding", title: "encoding", name: "encoding", tip: "Sixteen bytes as the cubin holds them", cell: r => escaped(K.columns.encoding[r]) },
  ];
  const hidden = new Set(["encoding", "live registers", "reuse"]);
  let columns = [];
  const figureOf = (r, label) => K.figures[K.columns.address[r]]?.[label];
  function choose() {
    const figures = K.labels.map(label => ({ group: label, title: label, name: "figure", tip: label, cell: r => escaped(String(shownFigure(figureOf(r, label)))) }));
    const every = [...figures, ...COLUMNS].filter(c => c.name !== "live" || K.columns.live.some(v => v !== null));
    columns = every.filter(c => !hidden.has(c.group));
    const groups = ["address", ...new Set(every.map(c => c.group))];
    $("#columns").replaceChildren($("#columns legend"), ...groups.map(group => {
      const label = document.createElement("label"), box = Object.assign(document.createElement("input"), { type: "checkbox", checked: !hidden.has(group) });
      box.addEventListener("change", () => { if (box.checked) hidden.delete(group); else hidden.add(group); columns = every.filter(c => !hidden.has(c.group)); head(); sass.draw(true); });
      label.append(box, group);
      return label;
    }));
    head();
  }
  const gutter = text => hidden.has("address") ? '<span class="g none"></span>' : `<span class="g c-address">${text}</span>`;
  function head() {
    const titles = $("#sass .titles");
    titles.innerHTML = gutter("<b>address</b>") + '<span class="band"></span>'
      + columns.map(c => `<span class="c-${c.name}" title="${escaped(c.tip)}"><b>${escaped(c.title)}</b></span>`).join("") + "<span><b>instruction</b></span>";
    const wide = `max(100%, calc(${titles.lastChild.offsetLeft}px + ${K.longest(K.columns.text) + 4}ch))`;
    sass.sheet.style.width = titles.style.width = wide;
  }
  const heatOf = { stall: r => K.columns.stall[r] / 15, "live registers": r => (K.columns.live[r] ?? 0) / (K.most.live || 1) };
  const colourBy = $("#colour");
  const heat = r => { const mode = colourBy.value; return mode.startsWith("figure ") ? (Number(figureOf(r, mode.slice(7))) || 0) / (K.most[mode] || 1) : heatOf[mode]?.(r) ?? 0; };
  const sassModel = {
    size: () => items.length,
    tone: i => items[i] >= 0 ? K.tone.sass[items[i]] : K.runs[-1 - items[i]].folded ? K.tone.block[-1 - items[i]] : 0,
    where: i => i < 0 || i >= items.length ? null : items[i] >= 0 ? { pane: "sass", row: items[i] } : { pane: "sass", block: -1 - items[i] },
    item: where => where.block !== undefined ? items.indexOf(-1 - where.block) : itemOf[where.row],
    html: i => {
      const r = items[i], id = `role="treeitem" aria-selected="false" id="sass-${i}" data-i="${i}"`;
      if (r < 0) {
        const b = K.runs[-1 - r], n = b.end - b.first;
        return `<div class="l b" ${id} aria-level="1" aria-expanded="${!b.folded}" data-block="${b.number}"><span class="g">Block ${b.number}</span>${b.depth ? `<span class="depth">loop depth ${b.depth}</span>` : ""}<span>${many(n, "instruction")}</span><span>${many(b.stalls, "stall cycle")}</span>${b.follows.length ? `<span>→ ${b.follows.join(", ")}</span>` : ""}</div>`;
      }
      const colour = COLOURS[K.pipes[K.columns.pipe[r]]];
      let address = hex(K.columns.address[r]);
      if (query && address.search(query) >= 0) address = `<mark>${address}</mark>`;
      return `<div class="l i" ${id} aria-level="2" data-row="${r}" data-address="${K.columns.address[r]}" style="--p:${colour};--h:${Math.round(100 * Math.min(1, heat(r)))}">`
        + gutter(address) + '<span class="band"></span>' + columns.map(c => `<span class="c-${c.name}">${c.cell(r)}</span>`).join("") + `<span class="t">${painted(K.columns.text[r], "sass")}</span></div>`;
    },
  };
  function fold(b, to = !K.runs[b].folded) {
    K.runs[b].folded = to;
    refold(-1 - b);
  }
  function refold(keep) {
    lay();
    sass.sheet.style.height = `${items.length * LINE}px`;
    if (keep !== undefined) sass.cursor = items.indexOf(keep);
    sass.cursor = Math.min(sass.cursor, items.length - 1);
    sass.draw(true); sass.rule();
    const every = K.runs.every(b => b.folded);
    $("#fold").textContent = every ? "Unfold" : "Fold";
  }
  function foldAll() { const to = !K.runs.every(b => b.folded); for (const b of K.runs) b.folded = to; refold(); sass.reveal(Math.max(0, sass.cursor)); }

  function recolour() {
    const mode = colourBy.value, legend = $("#sass .legend"), tint = mode === "pipe";
    sass.el.classList.toggle("tint", tint);
    sass.el.classList.toggle("heat", !tint && mode !== "none");
    legend.hidden = mode === "none";
    const most = mode === "stall" ? 15 : mode === "live registers" ? K.most.live : K.most[mode];
    if (tint) {
      const counts = K.pipes.map((pipe, p) => [pipe, K.columns.pipe.reduce((n, q) => n + (q === p), 0)]).sort((a, b) => b[1] - a[1]);
      legend.innerHTML = counts.map(([pipe, n]) => `<span style="--p:${COLOURS[pipe]}"><i class="dot"></i><b>${escaped(pipe || "none")}</b> ${grouped(n)}</span>`).join("");
      legend.setAttribute("aria-label", "Colours: " + counts.map(([pipe, n]) => `${pipe} ${n}`).join(", "));
    } else {
      const what = mode === "stall" ? "stall cycles" : mode.replace(/^figure /, "");
      legend.innerHTML = `<span>${escaped(what)}</span><b>0</b><i class="bar"></i><b>${escaped(String(shownFigure(most ?? 0)))}</b>`;
      legend.setAttribute("aria-label", `Colours: ${what} from 0, pale, to ${most}, deep`);
    }
    sass.draw(true);
  }

  // ---- pin and step
  function fix(where) {
    pin = spot = where; aim = null; at = 0;
    light(where, true);
    const rows = rowsAt(where);
    if (where.pane === "sass") {
      const C = K.columns, r = where.row, place = K.places[C.place[r]];
      steps = [...(place ? [[place[0], place[1]], ...place[2]].filter(([f]) => f < K.sources.length).map(([f, l]) => ({ pane: "source", file: f, line: l })) : NONE),
        ...(C.ir[r] && K.panes.ir.list.length ? [{ pane: "ir", line: C.ir[r] }] : NONE), ...(C.ptx[r] && K.panes.ptx.list.length ? [{ pane: "ptx", line: C.ptx[r] }] : NONE)];
    } else steps = rows.flat().map(row => ({ pane: "sass", row }));
    for (const name of ["ptx", "ir"]) if (where.pane !== name) { const i = firstOf(K.tone[name]); if (i) BY[name].reveal(i - 1); }
    if (where.pane !== "source") {
      const best = steps.find(s => s.pane === "source") || firstSource();
      if (best) { open(best.file); source.reveal(best.line - 1); }
    }
    if (steps.length) step(0);
    told();
  }
  const firstOf = tone => { const i = tone.indexOf(2); return i >= 0 ? i : Math.max(0, tone.indexOf(1)); };
  function firstSource() {
    const order = [file, ...K.sources.keys()];
    for (const wanted of [2, 1]) for (const f of order) { const line = K.tone.source[f]?.indexOf(wanted) ?? -1; if (line > 0) return { pane: "source", file: f, line }; }
    return null;
  }
  function unpin() { pin = spot = aim = null; steps = NONE; light(null, true); told(); }
  function told() {
    $("#pin").hidden = !pin;
    $("#steps").hidden = !steps.length;
    $("#step").textContent = steps.length ? `${at + 1} of ${steps.length}` : "";
  }
  function step(by) {
    if (!steps.length) return;
    at = (at + by + steps.length) % steps.length;
    aim = steps[at];
    show(aim);
    told();
  }
  /** Bring a line into view, whatever hides it. */
  function show(where) {
    if (where.pane === "source") open(where.file);
    if (where.row !== undefined && K.runs[K.blockOf[where.row]].folded) fold(K.blockOf[where.row], false);
    const pane = BY[where.pane];
    pane.reveal(pane.item(where));
    for (const p of PANES) p.dress();
  }

  // ---- search
  const find = $("#find"), regex = $("#regex");
  function ranges(text) {
    if (!query) return NONE;
    const found = [];
    query.lastIndex = 0;
    for (let m; (m = query.exec(text));) { if (!m[0]) query.lastIndex++; else found.push([m.index, m.index + m[0].length]); }
    return found;
  }
  function search() {
    const text = find.value, plain = regex.getAttribute("aria-pressed") !== "true";
    query = null; hits = NONE; hit = -1;
    let says = "";
    try { if (text) query = new RegExp(plain ? text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&") : text, "gi"); } catch { says = "bad pattern"; }
    if (query) {
      const has = line => { query.lastIndex = 0; const m = query.exec(line); return Boolean(m && m[0]); };
      hits = [];
      K.panes.source.forEach(({ list }, f) => list.forEach((line, i) => { if (has(line)) hits.push({ pane: "source", file: f, line: i + 1 }); }));
      for (const name of ["ir", "ptx"]) K.panes[name].list.forEach((line, i) => { if (has(line)) hits.push({ pane: name, line: i + 1 }); });
      K.columns.text.forEach((line, row) => { if (has(line) || has(hex(K.columns.address[row]))) hits.push({ pane: "sass", row }); });
      hits = hits.filter(h => BY[h.pane].shown);
      if (!hits.length) says = "no match";
    }
    find.setAttribute("aria-invalid", String(Boolean(says)));
    $("#found").textContent = says;
    $("#find-on").disabled = $("#find-back").disabled = !hits.length;
    for (const pane of PANES) { pane.draw(true); pane.rule(); }
    if (hits.length) seek(1);
  }
  function seek(by) {
    if (!hits.length) return;
    hit = hit < 0 ? 0 : (hit + by + hits.length) % hits.length;
    $("#found").textContent = `${hit + 1} of ${grouped(hits.length)}`;
    show(hits[hit]);
  }
  let typing = 0;
  find.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(() => { typing = 0; search(); }, 80); });
  find.addEventListener("keydown", event => {
    if (event.key === "Enter") { if (typing) { clearTimeout(typing); typing = 0; search(); } else seek(event.shiftKey ? -1 : 1); event.preventDefault(); }
    if (event.key === "Escape") { find.value = ""; search(); PANES.findLast(p => p.shown)?.scroll.focus({ preventScroll: true }); event.preventDefault(); event.stopPropagation(); }
  });
  regex.addEventListener("click", () => { regex.setAttribute("aria-pressed", String(regex.getAttribute("aria-pressed") !== "true")); search(); });
  $("#find-on").addEventListener("click", () => seek(1));
  $("#find-back").addEventListener("click", () => seek(-1));

  // ---- flow: a layered drawing of the blocks
  const BOX = { w: 84, h: 38, gap: 24, down: 40, thin: 14 };
  let drawnFor = null;
  /** Ranks by the longest way there. A part that nothing leads to stands below the block before it. */
  function layers(runs, next) {
    const n = runs.length, state = new Uint8Array(n), back = new Set(), rank = new Int32Array(n);
    for (let start = 0; start < n; start++) {
      if (state[start]) continue;
      const stack = [[start, 0]], order = [];
      state[start] = 1; rank[start] = start ? rank[start - 1] + 1 : 0;
      while (stack.length) {
        const top = stack.at(-1), [v, i] = top;
        if (i < next[v].length) {
          top[1]++;
          const to = next[v][i];
          if (state[to] === 1) back.add(v * n + to);
          else if (!state[to]) { state[to] = 1; stack.push([to, 0]); }
        } else { state[v] = 2; order.push(v); stack.pop(); }
      }
      const mine = new Set(order);
      for (const v of order.reverse()) for (const to of next[v]) if (mine.has(to) && !back.has(v * n + to)) rank[to] = Math.max(rank[to], rank[v] + 1);
    }
    next.forEach((list, v) => { for (const to of list) if (rank[to] <= rank[v]) back.add(v * n + to); });
    return { rank, back };
  }
  function layout(runs, next) {
    const n = runs.length, { rank, back } = layers(runs, next);
    const nodes = runs.map((_, v) => ({ v, rank: rank[v], wide: BOX.w, up: [], down: [], x: 0 }));
    const edges = [];
    const spans = next.reduce((sum, list, v) => sum + list.reduce((s, to) => s + Math.max(0, rank[to] - rank[v] - 1), 0), 0);
    next.forEach((list, v) => list.forEach(to => {
      if (back.has(v * n + to)) { edges.push({ from: v, to, back: true }); return; }
      const path = [nodes[v]];
      if (spans < 6000) for (let r = rank[v] + 1; r < rank[to]; r++) { const bend = { v: -1, rank: r, wide: BOX.thin, up: [], down: [], x: 0 }; nodes.push(bend); path.push(bend); }
      path.push(nodes[to]);
      for (let i = 1; i < path.length; i++) { path[i - 1].down.push(path[i]); path[i].up.push(path[i - 1]); }
      edges.push({ from: v, to, path });
    }));
    const rows = [];
    for (const node of nodes) (rows[node.rank] ||= []).push(node);
    rows.forEach(row => row.forEach((node, i) => { node.i = i; }));
    const mean = (list, f, otherwise) => list.length ? list.reduce((s, x) => s + f(x), 0) / list.length : otherwise;
    for (let turn = 0; turn < 10; turn++) for (const row of turn % 2 ? [...rows].reverse() : rows) {
      const side = turn % 2 ? "down" : "up";
      for (const node of row) node.want = mean(node[side], x => x.i, node.i);
      row.sort((a, b) => a.want - b.want || a.i - b.i).forEach((node, i) => { node.i = i; });
    }
    for (const row of rows) { let x = 0; for (const node of row) { node.x = x + node.wide / 2; x += node.wide + BOX.gap; } for (const node of row) node.x -= (x - BOX.gap) / 2; }
    for (let turn = 0; turn < 12; turn++) for (const row of turn % 2 ? [...rows].reverse() : rows) {
      const wish = row.map(node => mean([...node.up, ...node.down], x => x.x, node.x));
      row.forEach((node, i) => { const before = row[i - 1]; node.x = before ? Math.max(wish[i], before.x + (before.wide + node.wide) / 2 + BOX.gap) : wish[i]; });
      const off = mean(row.map((node, i) => wish[i] - node.x), x => x, 0);
      for (const node of row) node.x += off;
    }
    for (const node of nodes) if (!node.up.length && !node.down.length && rows[node.rank].length === 1) node.x = nodes[0].x;
    for (const node of nodes) node.y = node.rank * (BOX.h + BOX.down);
    return { nodes, edges, depth: rows.length };
  }
  function drawFlow() {
    if (!flow.shown || drawnFor === K) return;
    drawnFor = K;
    const holder = $(".scroll", flow.el), runs = K.runs;
    $(".about", flow.el).textContent = many(runs.length, "block");
    if (!runs.length || runs.length > 3000) { holder.textContent = runs.length ? "Too many blocks to draw." : "No blocks."; return; }
    const next = runs.map(b => [...new Set(b.follows.map(f => K.byNumber.get(f)).filter(f => f !== undefined))]);
    const { nodes, edges, depth } = layout(runs, next);
    const left = Math.min(...nodes.map(o => o.x - o.wide / 2)) - 8;
    let right = Math.max(...nodes.map(o => o.x + o.wide / 2)) + 8;
    let lines_ = "";
    const tip = (x, y, turn, kind) => `<path class="tip ${kind}" d="M0,0L-3.5,-7L3.5,-7Z" transform="translate(${x.toFixed(1)},${y.toFixed(1)}) rotate(${turn})"/>`;
    for (const e of edges) {
      const a = nodes[e.from], b = nodes[e.to], marks = `data-from="${e.from}" data-to="${e.to}"`;
      if (e.back) {
        const x1 = a.x + BOX.w / 2, x2 = b.x + BOX.w / 2, y1 = a.y + BOX.h * (e.from === e.to ? .75 : .5), y2 = b.y + BOX.h * (e.from === e.to ? .25 : .5);
        const out = Math.max(x1, x2) + 26 + Math.min(90, 9 * (a.rank - b.rank));
        right = Math.max(right, out);
        lines_ += `<path class="edge back" ${marks} d="M${x1},${y1}C${out},${y1} ${out},${y2} ${x2 + 6},${y2}"/>` + tip(x2, y2, 90, "back");
      } else {
        const stops = e.path.map((o, i) => [o.x, o.y + (i === 0 ? BOX.h : o.v < 0 ? BOX.h / 2 : -6)]);
        let d = `M${stops[0]}`;
        for (let i = 1; i < stops.length; i++) { const [[x0, y0], [x1, y1]] = [stops[i - 1], stops[i]], mid = (y0 + y1) / 2; d += `C${x0},${mid} ${x1},${mid} ${x1},${y1}`; }
        lines_ += `<path class="edge" ${marks} d="${d}"/>` + tip(b.x, b.y, 0, "");
      }
    }
    const boxes = runs.map((b, v) => `<g class="box d${Math.min(b.depth, 3)}" data-b="${v}" tabindex="0" role="button" aria-label="Block ${b.number}, ${many(b.end - b.first, "instruction")}${b.depth ? `, loop depth ${b.depth}` : ""}" transform="translate(${(nodes[v].x - BOX.w / 2).toFixed(1)},${nodes[v].y})"><rect width="${BOX.w}" height="${BOX.h}" rx="5"/><text x="${BOX.w / 2}" y="16">${b.number}</text><text class="many" x="${BOX.w / 2}" y="30">${b.end - b.first} instr</text></g>`).join("");
    const high = depth * (BOX.h + BOX.down) - BOX.down;
    holder.innerHTML = `<svg width="${Math.ceil(right - left)}" height="${high + 16}" viewBox="${left} -8 ${right - left} ${high + 16}" role="group" aria-label="Control-flow graph">${lines_}${boxes}</svg>`;
    flow.boxes = all("g.box", holder); flow.edges = all(".edge", holder);
    for (const box of flow.boxes) box.base = box.getAttribute("class");
    dressFlow();
  }
  function dressFlow() {
    if (!flow.shown || drawnFor !== K) return;
    for (const box of flow.boxes) box.setAttribute("class", box.base + ["", " far", " kin"][K.tone.block[box.dataset.b]]);
    const here = lit?.block;
    for (const edge of flow.edges) edge.classList.toggle("on", here !== undefined && (Number(edge.dataset.from) === here || Number(edge.dataset.to) === here));
  }
  const flow = { el: $("#flow"), boxes: NONE, edges: NONE, get shown() { return !this.el.hidden; } };
  const boxOf = event => event.target.closest?.("g.box");
  function visit(box) {
    const b = Number(box.dataset.b), item = items.indexOf(-1 - b);
    sass.scroll.scrollTop = item * LINE;
    sass.cursor = item;
    sass.draw();
    if (!pin) { spot = { pane: "sass", block: b }; light(spot); }
  }
  flow.el.addEventListener("click", event => { const box = boxOf(event); if (box) visit(box); });
  flow.el.addEventListener("keydown", event => { const box = boxOf(event); if (box && (event.key === "Enter" || event.key === " ")) { visit(box); event.preventDefault(); event.stopPropagation(); } });
  for (const kind of ["pointerover", "focusin"]) flow.el.addEventListener(kind, event => { const box = boxOf(event); if (box && !pin) { spot = { pane: "sass", block: Number(box.dataset.b) }; light(spot); } });
  flow.el.addEventListener("pointerleave", () => { if (!pin) { spot = null; light(null); } });

  // ---- summary
  const node = (tag, text, name) => { const made = document.createElement(tag); if (text !== undefined) made.textContent = text; if (name) made.className = name; return made; };
  const worth = v => v === null || v === undefined ? "–" : v === true ? "yes" : v === false ? "no" : typeof v === "number" ? shownFigure(v) : Array.isArray(v) ? v.map(worth).join(", ") || "–" : typeof v === "object" ? Object.entries(v).map(([name, x]) => `${title(name)}: ${worth(x)}`).join(", ") : String(v);
  const plain = v => v !== null && typeof v === "object" && !Array.isArray(v);
  const isTable = v => plain(v) ? Object.keys(v).length > 0 : Array.isArray(v) && v.length > 0 && v.every(plain);
  const title = text => String(text).replaceAll("_", " ");
  function table(value) {
    const made = node("table"), pairs = Array.isArray(value) ? value.map((v, i) => [i + 1, v]) : Object.entries(value);
    const heads = pairs.every(([, v]) => plain(v)) ? [...new Set(pairs.flatMap(([, v]) => Object.keys(v)))] : null;
    const cell = v => node("td", worth(v), typeof v === "number" ? "num" : "");
    if (heads) {
      const row = made.createTHead().insertRow();
      row.append(...["", ...heads].map((h, i) => { const th = node("th", title(h), i && pairs.some(([, v]) => typeof v[h] === "number") ? "num" : ""); th.scope = "col"; return th; }));
    }
    const body = made.createTBody();
    for (const [name, v] of pairs) { const th = node("th", title(name)); th.scope = "row"; body.insertRow().append(th, ...(heads ? heads.map(h => cell(v[h])) : [cell(v)])); }
    return made;
  }
  function summarise() {
    const list = node("dl"), add = (name, v) => {
      const nested = isTable(v), dt = node("dt", title(name), nested ? "wide" : ""), dd = node("dd", nested ? undefined : worth(v), nested ? "wide" : "");
      if (nested) dd.append(table(v));
      list.append(dt, dd);
    };
    for (const [name, v] of [["kernel", K.name], ["target", K.target], ["compiler", K.compiler], ["symbol", K.symbol], ...K.heading]) add(name, v);
    const entries = Object.entries(K.summary);
    for (const [name, v] of [...entries.filter(([, v]) => !isTable(v)), ...entries.filter(([, v]) => isTable(v))]) add(name, v);
    $("#summary .scroll").replaceChildren(list);
    const strip = [...K.heading.map(([name, v]) => [name, v, ""]), ...entries.filter(([, v]) => !plain(v) && !Array.isArray(v)).map(([name, v]) => [name, v, "plain"]), ["compiler", K.compiler, "plain"]];
    $(".strip").replaceChildren(...strip.map(([name, v, kind]) => { const pair = node("div", undefined, kind); pair.append(node("dt", title(name)), node("dd", worth(v))); return pair; }));
  }

  // ---- panes, tabs, views, dividers
  const source = new Pane("source", sourceModel), ir = new Pane("ir", textModel("ir")), ptx = new Pane("ptx", textModel("ptx")), sass = new Pane("sass", sassModel);
  const PANES = [source, ir, ptx, sass], BY = { source, ir, ptx, sass };
  const WEIGHTS = { source: 29, ir: 26, ptx: 26, sass: 55, flow: 24, summary: 26 };
  const boxes = all(".pane"), dividers = all(".divider");
  const wanted = { source: true, ir: true, ptx: true, sass: true, flow: false, summary: false };
  const skins = {};

  function arrange(fresh = false) {
    const there = { source: K.sources.length > 0, ir: K.panes.ir.list.length > 0, ptx: K.panes.ptx.list.length > 0, sass: true, flow: true, summary: true };
    for (const button of all("[data-view]")) { const name = button.dataset.view; button.hidden = !there[name]; button.setAttribute("aria-pressed", String(wanted[name])); }
    for (const box of boxes) { box.hidden = !(there[box.id] && wanted[box.id]); if (fresh || !box.style.flexGrow) box.style.flexGrow = WEIGHTS[box.id]; }
    dividers.forEach((divider, d) => {
      divider.hidden = boxes[d + 1].hidden || !boxes.slice(0, d + 1).some(box => !box.hidden);
      if (!divider.hidden) { const left = boxes.slice(0, d + 1).findLast(box => !box.hidden); divider.setAttribute("aria-label", `Between ${left.ariaLabel} and ${boxes[d + 1].ariaLabel}`); share(divider); }
    });
    for (const pane of PANES) { pane.height = pane.scroll.clientHeight; pane.draw(true); pane.rule(); }
    drawFlow();
  }
  const sides = divider => { const d = dividers.indexOf(divider); return [boxes.slice(0, d + 1).findLast(box => !box.hidden), boxes[d + 1]]; };
  function share(divider) { const [a, b] = sides(divider).map(box => Number(box.style.flexGrow)); divider.setAttribute("aria-valuenow", String(Math.round(100 * a / (a + b)))); }
  function move(divider, by) {
    const [a, b] = sides(divider), wide = boxes.map(box => box.hidden ? 0 : box.getBoundingClientRect().width), sum = wide.reduce((x, y) => x + y);
    const grow = boxes.reduce((s, box) => s + (box.hidden ? 0 : Number(box.style.flexGrow)), 0);
    const [wa, wb] = [a, b].map(box => wide[boxes.indexOf(box)]), to = Math.max(110, Math.min(wa + wb - 110, wa + by));
    a.style.flexGrow = to / sum * grow; b.style.flexGrow = (wa + wb - to) / sum * grow;
    share(divider);
  }
  for (const divider of dividers) {
    divider.setAttribute("aria-valuemin", "0"); divider.setAttribute("aria-valuemax", "100");
    let from = 0;
    divider.addEventListener("pointerdown", event => { divider.setPointerCapture(event.pointerId); divider.classList.add("drag"); from = event.clientX; event.preventDefault(); });
    divider.addEventListener("pointermove", event => { if (divider.classList.contains("drag")) { move(divider, event.clientX - from); from = event.clientX; } });
    for (const kind of ["pointerup", "pointercancel"]) divider.addEventListener(kind, () => divider.classList.remove("drag"));
    divider.addEventListener("dblclick", () => arrange(true));
    divider.addEventListener("keydown", event => {
      const by = { ArrowLeft: -24, ArrowRight: 24 }[event.key];
      if (by) move(divider, by); else if (event.key === "Home") arrange(true); else return;
      event.preventDefault(); event.stopPropagation();
    });
  }
  function view(name, to = !wanted[name]) { wanted[name] = to; arrange(); }
  for (const button of all("[data-view]")) button.addEventListener("click", () => view(button.dataset.view));

  function open(f) {
    if (f === file || f >= K.sources.length) return;
    file = f;
    tabs.forEach((tab, i) => { tab.setAttribute("aria-selected", String(i === f)); tab.tabIndex = i === f ? 0 : -1; if (i === f) tab.className = ""; });
    source.reset(width("source", K.panes.source[f].list));
    source.rule();
  }
  function width(name, list) {
    const most = name === "source" ? K.size : 0;
    S.gutter[name] = `calc(${String(list.length).length}ch + ${most > 999 ? 62 : 52}px)`;
    return `max(100%, calc(${K.longest(list) + String(list.length).length + 2}ch + 86px))`;
  }
  /** File names as short as they can be told apart. */
  function shorten(files) {
    const parts = files.map(f => f.split("/"));
    return parts.map((p, i) => { let n = 1; while (n < p.length && parts.some((q, j) => j !== i && q.slice(-n).join("/") === p.slice(-n).join("/"))) n++; return p.slice(-n).join("/"); });
  }
  function tabulate() {
    const holder = $("#source .tabs");
    holder.hidden = K.sources.length < 2;
    $("#source .about").textContent = K.sources.length === 1 ? K.short[0] : "";
    $("#source .about").title = K.files[0] ?? "";
    tabs = K.sources.map((_, f) => {
      const tab = node("button", K.short[f]);
      Object.assign(tab, { type: "button", title: K.files[f], tabIndex: f ? -1 : 0 });
      tab.setAttribute("role", "tab"); tab.setAttribute("aria-selected", String(f === 0));
      tab.addEventListener("click", () => { open(f); source.dress(); light(lit, true); });
      return tab;
    });
    holder.replaceChildren(...tabs);
  }
  $("#source .tabs").addEventListener("keydown", event => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    const next = tabs[(tabs.indexOf(document.activeElement) + by + tabs.length) % tabs.length];
    next.click(); next.focus();
    event.preventDefault(); event.stopPropagation();
  });

  // ---- a kernel comes on stage
  function load(number) {
    if (!kept.has(number)) kept.set(number, index(data(`kernel-${number}`)));
    K = kept.get(number);
    const highest = list => list.reduce((a, b) => Math.max(a, Number(b) || 0), 0);
    K.short ??= shorten(K.files);
    K.most ??= { live: highest(K.columns.live), ...Object.fromEntries(K.labels.map(label => [`figure ${label}`, highest(Object.values(K.figures).map(f => f[label]))])) };
    file = 0; spot = pin = aim = lit = null; steps = NONE;
    const modes = [["none", "none"], ["pipe", "pipe"], ["stall", "stall"], ...(K.most.live ? [["live registers", "live registers"]] : []),
      ...K.labels.filter(label => K.most[`figure ${label}`]).map(label => [`figure ${label}`, label])];
    const mode = colourBy.value || "pipe";
    colourBy.replaceChildren(...modes.map(([value, text]) => Object.assign(node("option", text), { value })));
    colourBy.value = modes.some(([value]) => value === mode) ? mode : "pipe";
    lay(); tabulate(); summarise();
    $("#ir h2").textContent = $('[data-view="ir"]').textContent = K.ir_kind.toUpperCase();
    $("#ptx .about").textContent = K.panes.ptx.list.length ? many(K.panes.ptx.list.length, "line") : "";
    $("#ir .about").textContent = many(K.panes.ir.list.length, "line");
    $("#sass .about").textContent = many(K.size, "instruction");
    $("#sass .empty").hidden = K.size > 0; $("#sass .empty").textContent = "No instructions.";
    arrange(); choose();
    if (K.sources.length) source.reset(width("source", K.panes.source[0].list));
    ptx.reset(width("ptx", K.panes.ptx.list)); ir.reset(width("ir", K.panes.ir.list)); sass.reset(sass.sheet.style.width);
    recolour(); refold(); light(null, true); told();
    if (find.value) search();
    drawFlow();
    root.dataset.shown = String(number);
  }
  const kernel = $("#kernel");
  kernel.addEventListener("change", () => load(Number(kernel.value)));
  colourBy.addEventListener("change", recolour);
  $("#fold").addEventListener("click", foldAll);
  $("#unpin").addEventListener("click", unpin);
  $("#step-on").addEventListener("click", () => step(1));
  $("#step-back").addEventListener("click", () => step(-1));
  document.addEventListener("pointerdown", event => { const menu = $(".menu"); if (menu.open && !menu.contains(event.target)) menu.open = false; });

  // ---- skin: the system's until the reader chooses
  const system = matchMedia("(prefers-color-scheme: dark)"), dark = $("#theme");
  let chosen = null;
  try { chosen = localStorage.getItem("assay-theme"); } catch { /* a page from a file may have no storage */ }
  const skin = () => chosen || (system.matches ? "dark" : "light");
  function wear() {
    root.dataset.theme = skin();
    dark.setAttribute("aria-pressed", String(skin() === "dark"));
    $("span", dark).textContent = skin() === "dark" ? "Light" : "Dark";
    const style = getComputedStyle(root);
    for (const name of ["--kin-bar", "--far-bar", "--mark-now"]) skins[name] = style.getPropertyValue(name).trim();
    if (K) for (const pane of PANES) pane.rule();
  }
  function swap() { chosen = skin() === "dark" ? "light" : "dark"; try { localStorage.setItem("assay-theme", chosen); } catch { /* as above */ } wear(); }
  dark.addEventListener("click", swap);
  system.addEventListener("change", wear);

  // ---- keys
  const keys = $("#keys");
  $("#help").addEventListener("click", () => keys.showModal());
  $("#keys-close").addEventListener("click", () => keys.close());
  const ACTS = {
    "/": () => { find.focus(); find.select(); }, "?": () => keys.showModal(), n: () => step(1), p: () => step(-1), t: swap, F: foldAll,
    g: () => view("flow"), s: () => view("summary"), k: () => kernel.focus(),
    c: () => { colourBy.selectedIndex = (colourBy.selectedIndex + 1) % colourBy.length; recolour(); },
    f: () => { const where = sass.model.where(Math.max(0, sass.cursor >= 0 ? sass.cursor : sass.item(spot))); if (where) fold(where.block ?? K.blockOf[where.row]); sass.dress(); },
    Escape: () => { const menu = $(".menu"); if (menu.open) { menu.open = false; $("summary", menu).focus(); } else unpin(); },
  };
  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || keys.open) return;
    const inField = event.target.matches("input:not([type=checkbox]), select");
    if (inField && event.key !== "Escape") return;
    const pane = PANES.find(p => p.scroll === event.target), page = pane ? Math.max(1, Math.floor(pane.height / LINE) - 2) : 0;
    const go = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -1e9, End: 1e9 }[event.key];
    const side = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (pane && go) pane.to(pane.cursor < 0 ? pane.top() : pane.cursor + go);
    else if (pane && (event.key === "Enter" || event.key === " ")) { pane.press(); pane.dress(); }
    else if (pane === sass && side && items[pane.cursor] < 0) fold(-1 - items[pane.cursor], side < 0);
    else if (side && steps.length && !inField) step(side);
    else if (/^[1-4]$/.test(event.key)) { const to = PANES[Number(event.key) - 1]; if (to.shown) to.scroll.focus({ preventScroll: true, focusVisible: true }); }
    else if (ACTS[event.key]) ACTS[event.key]();
    else return;
    event.preventDefault();
  });

  wear();
  if (kernel.options.length) load(0);
  else { $("main").hidden = true; $(".strip").textContent = "No kernels."; }
})();
