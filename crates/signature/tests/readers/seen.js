// SPDX-License-Identifier: GPL-3.0-or-later
// The visible words of a document, in the order of the document or, with `byPlace`, of the window.
// Letters side by side are one word, in any elements.
function seen(doc, byPlace) {
  const win = doc.defaultView, notes = ".moz-header-part1, .moz-header-part2, .moz-header-part3, .moz-mime-attachment-header, .moz-mime-attachment-wrap, .moz-attached-image-container";
  const channels = colour => {
    const found = /^rgba?\((.*)\)$/.exec(colour);
    if (!found) return null;
    const [r, g, b, a = 1] = found[1].split(/[ ,\/]+/).map(Number);
    return { rgb: [r, g, b], a };
  };
  // The colour behind an element; null if it is unknown.
  const behind = element => {
    for (let e = element; e; e = e.parentElement) {
      const style = win.getComputedStyle(e);
      const image = style.backgroundImage;
      if (image != "none") {
        const all = [...image.matchAll(/rgba?\([^)]*\)/g)].map(m => m[0]);
        return all.length && all.every(c => c == all[0]) && channels(all[0]).a == 1 ? channels(all[0]).rgb : null;
      }
      const colour = channels(style.backgroundColor);
      if (!colour || colour.a > 0 && colour.a < 1) return null;
      if (colour.a == 1) return colour.rgb;
    }
    return [255, 255, 255];
  };
  const drawn = element => {
    const style = win.getComputedStyle(element);
    const fill = channels(style.webkitTextFillColor), around = behind(element);
    if (/text/.test(style.backgroundClip + style.webkitBackgroundClip) && (!fill || fill.a < 1)) return true;
    if (!fill || !around) return !fill || fill.a > 0.05;
    const alike = fill.a < 0.05 || fill.rgb.every((c, i) => Math.abs(c - around[i]) <= 24);
    if (!alike) return true;
    const marks = (style.textShadow != "none" ? style.textShadow.match(/rgba?\([^)]*\)/g) || [] : []).concat(parseFloat(style.webkitTextStrokeWidth) > 0 ? [style.webkitTextStrokeColor] : []);
    return marks.some(mark => { const c = channels(mark); return c && c.a > 0.05 && !c.rgb.every((v, i) => Math.abs(v - around[i]) <= 24); });
  };
  const isOpaque = e => {
    const style = win.getComputedStyle(e), colour = channels(style.backgroundColor);
    return colour && colour.a == 1 && parseFloat(style.opacity) > 0.9;
  };
  // Whether a box with letters of an element is visible.
  const boxed = (element, box) => {
    let left = Math.max(box.left, -win.scrollX), top = Math.max(box.top, -win.scrollY), right = box.right, bottom = box.bottom;
    if (right - left < 1.5 || bottom - top < 3 || left > win.innerWidth + 200) return false;
    for (let e = element; e; e = e.parentElement) {
      const style = win.getComputedStyle(e), around = e.getBoundingClientRect();
      if (style.display == "contents") continue;
      if (parseFloat(style.opacity) < 0.05 || /opacity\(0(\.0\d*)?%?\)|blur\([2-9]\dpx/.test(style.filter)) return false;
      const cut = /^rect\(([^)]*)\)/.exec(style.clip), sides = cut && cut[1].split(/[ ,]+/).map(parseFloat);
      if (cut && /absolute|fixed/.test(style.position) && (sides[2] - sides[0] < 3 || sides[1] - sides[3] < 3)) return false;
      if (/transparent|rgba\(0, 0, 0, 0\).*rgba\(0, 0, 0, 0\)/.test(style.maskImage)) return false;
      if (/hidden|clip|scroll|auto/.test(style.overflowX + style.overflowY) && style.display != "contents" && style.display != "inline" && e != doc.body && e != doc.documentElement) {
        left = Math.max(left, around.left); right = Math.min(right, around.right);
        top = Math.max(top, around.top); bottom = Math.min(bottom, around.bottom);
        if (right - left < 1.5 || bottom - top < 3) return false;
      }
    }
    const x = (left + right) / 2, y = (top + bottom) / 2;
    if (x < 0 || y < 0 || x >= win.innerWidth || y >= win.innerHeight) return true;
    const above = doc.elementsFromPoint(x, y), at = above.includes(element) ? above.indexOf(element) : above.findIndex(e => e.contains(element));
    const cut = [...ancestors(element)].some(e => win.getComputedStyle(e).clipPath != "none");
    if (cut && !above.includes(element)) return false;
    return !above.slice(0, at < 0 ? 0 : at).some(e => !element.contains(e) && e != doc.body && e != doc.documentElement && isOpaque(e));
  };
  const ancestors = function* (element) { for (let e = element; e; e = e.parentElement) yield e; };
  const letters = [];
  const range = doc.createRange();
  const look = node => {
    const element = node.parentElement;
    if (!element || element.closest(notes) || /^(script|style|title|textarea)$/i.test(element.localName)) return;
    const folded = element.closest("details:not([open])");
    if (folded && !element.closest("summary") || [...ancestors(element)].some(e => win.getComputedStyle(e).contentVisibility == "hidden" && win.getComputedStyle(e).display != "inline")) return;
    if (element.checkVisibility && !element.checkVisibility() && win.getComputedStyle(element).display != "contents") return;
    const style = win.getComputedStyle(element);
    if (style.visibility != "visible" || parseFloat(style.fontSize) * (element.currentCSSZoom || 1) < 1.5 || !drawn(element)) return;
    for (let at = 0; at < node.data.length;) {
      const letter = String.fromCodePoint(node.data.codePointAt(at));
      range.setStart(node, at); range.setEnd(node, at += letter.length);
      const box = [...range.getClientRects()].find(b => b.width > 0) || range.getClientRects()[0];
      if (!box) continue;
      if (/\s/u.test(letter)) { if (box.width > 0) letters.push({ letter: " ", box, element }); continue; }
      const isMark = box.width == 0 && /\p{M}|\p{Cf}/u.test(letter);
      letters.push({ letter, box, element, isMark });
    }
  };
  const walker = doc.createTreeWalker(doc.body, 5);
  const said = (element, text) => { if (text) letters.push({ text, box: element.getBoundingClientRect(), element }); };
  const pseudo = (element, which) => {
    const content = win.getComputedStyle(element, which).content;
    const named = /^attr\(([-\w]+)\)$/.exec(content || "");
    const text = named ? [0, element.getAttribute(named[1])] : /^"(.*)"$/.exec(content || "");
    if (text && win.getComputedStyle(element, which).display != "none") said(element, text[1]);
  };
  const open = [];
  for (let node = walker.currentNode; node; node = walker.nextNode()) {
    while (open.length && !open[open.length - 1].contains(node)) pseudo(open.pop(), "::after");
    if (node.nodeType == 3) { look(node); continue; }
    const shown = node.getClientRects().length && win.getComputedStyle(node).visibility == "visible" && drawn(node) && !node.closest(notes);
    if (!shown) continue;
    pseudo(node, "::before");
    open.push(node);
    if (node.localName == "input" && !/^(hidden|checkbox|radio|password|image|file|range|color)$/.test(node.type)) said(node, node.value || node.placeholder);
    if (node.localName == "textarea") said(node, node.value);
    if (node.localName == "img" && node.alt && node.naturalWidth == 0) said(node, node.alt);
  }
  while (open.length) pseudo(open.pop(), "::after");
  const cache = new Map();
  const visible = letters.filter(l => {
    if (l.text) return true;
    if (l.isMark) return true;
    const key = Math.round(l.box.top) + ":" + Math.round(l.box.left / 8);
    if (!cache.has(l.element)) cache.set(l.element, new Map());
    const known = cache.get(l.element);
    if (!known.has(key)) known.set(key, boxed(l.element, l.box));
    return known.get(key);
  });
  if (byPlace) visible.sort((a, b) => Math.abs(a.box.top - b.box.top) > 6 ? a.box.top - b.box.top : a.box.left - b.box.left);
  let all = "", last = null;
  for (const l of visible) {
    const near = last && Math.abs(last.top - l.box.top) < 12 && (Math.abs(last.right - l.box.left) < 2 || Math.abs(last.left - l.box.right) < 2);
    if (l.text) { all += " " + l.text + " "; last = null; continue; }
    if (last && !near && !l.isMark) all += " ";
    all += l.letter;
    if (!l.isMark) last = l.box;
  }
  return all;
}
