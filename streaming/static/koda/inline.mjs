// Markdown inside a block, as a tree: a string, or { tag, children, href }. Pure.
//
// Two deviations from CommonMark, both for chat. Emphasis needs no space around it in Chinese. And
// in a block that is still being written (`open`), what has begun counts as closed: `**bo` is bold
// already, so that nothing changes its looks when the rest arrives.

const MAX_DEPTH = 20;
const MAX_LABEL = 500; // characters of a link's text
const MAX_RUN = 3; // `****` is no emphasis but a line somebody drew
const PUNCTUATION = /[\\!-/:-@[-`{-~]/;
const WORD = /[\p{L}\p{N}_]/u;
const SPECIAL = /[\\`*_~[!<\n]|https?:\/\//g;
const BARE_URL = /https?:\/\/[^\s<>"'`*\u3000-\u303f\uff00-\uffef]+/y;
const ANGLE_URL = /<((?:https?:\/\/|mailto:)[^\s<>]+)>/y;
const BREAK = /<br\s*\/?>/iy;
const TARGET = /\(\s{0,9}<?([^\s<>()]*(?:\([^\s<>()]*\)[^\s<>()]*)*)>?(?:\s{1,9}(?:"[^"]*"|'[^']*'))?\s{0,9}\)/y;
const PROTOCOLS = new Set(['http:', 'https:', 'mailto:']);
const TAGS = new Map([['*', 'em'], ['_', 'em'], ['**', 'strong'], ['__', 'strong'], ['~~', 'del']]);

/** The address if it is one that may be followed, else null: no scripts, no data, no paths of ours. */
export function safeHref(address) {
  try {
    const url = new URL(address);
    return PROTOCOLS.has(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

/** The tree of `text`, as a list. */
export function parseInline(text, { open = false, depth = 0 } = {}) {
  return new Scanner(text, open, depth).run();
}

class Scanner {
  constructor(text, open, depth) {
    Object.assign(this, { text, open, depth, at: 0 });
    this.frames = [{ marker: '', children: [] }]; // the innermost emphasis is the last
    this.unclosed = new Set(); // lengths of backticks that nothing closes any more
  }

  run() {
    while (this.at < this.text.length) {
      SPECIAL.lastIndex = this.at;
      const found = SPECIAL.exec(this.text);
      const end = found ? found.index : this.text.length;
      this.push(this.text.slice(this.at, end));
      this.at = end;
      if (found) this.special(found[0]);
    }
    while (this.frames.length > 1) this.finish();
    return this.frames[0].children;
  }

  push(node) {
    const { children } = this.frames.at(-1);
    if (typeof node !== 'string') children.push(node);
    else if (typeof children.at(-1) === 'string') children[children.length - 1] += node;
    else if (node) children.push(node);
  }

  literally(length) {
    this.push(this.text.slice(this.at, this.at + length));
    this.at += length;
  }

  match(pattern, at = this.at) {
    pattern.lastIndex = at;
    return pattern.exec(this.text);
  }

  special(sign) {
    if (sign === '\\') this.escape();
    else if (sign === '\n') this.lineEnd();
    else if (sign === '`') this.code();
    else if (sign === '<') this.angle();
    else if (sign === '[' || sign === '!') this.link();
    else if (sign.startsWith('http')) this.bareUrl();
    else this.emphasis(sign);
  }

  escape() {
    const next = this.text[this.at + 1] ?? '';
    if (next === '\n') this.at += 1;
    else if (!PUNCTUATION.test(next)) this.literally(1);
    else {
      this.at += 1;
      this.literally(1);
    }
  }

  lineEnd() {
    const { children } = this.frames.at(-1);
    if (typeof children.at(-1) === 'string') children[children.length - 1] = children.at(-1).trimEnd();
    this.literally(1);
  }

  code() {
    const { length } = this.match(/`+/y)[0];
    const begin = this.at + length;
    let end = this.unclosed.has(length) ? -1 : begin;
    const run = /`+/g;
    run.lastIndex = begin;
    for (let found; end !== -1;) {
      found = run.exec(this.text);
      end = found ? found.index : -1;
      if (!found || found[0].length === length) break;
    }
    if (end === -1 && !this.open) {
      this.unclosed.add(length);
      return this.literally(length);
    }
    const inner = this.text.slice(begin, end === -1 ? undefined : end).replaceAll('\n', ' ');
    const padded = inner.startsWith(' ') && inner.endsWith(' ') && inner.trim();
    const text = padded ? inner.slice(1, -1) : inner;
    if (text) this.push({ tag: 'code', children: [text] });
    this.at = end === -1 ? this.text.length : end + length;
    return undefined;
  }

  angle() {
    const url = this.match(ANGLE_URL);
    const href = url && safeHref(url[1]);
    if (href) {
      this.push({ tag: 'a', href, children: [url[1]] });
      this.at += url[0].length;
    } else if (this.match(BREAK)) {
      this.push({ tag: 'br', children: [] });
      this.at += this.match(BREAK)[0].length;
    } else this.literally(1);
  }

  bareUrl() {
    if (this.at && WORD.test(this.text[this.at - 1])) return this.literally(4);
    const url = this.match(BARE_URL)?.[0].replace(/[.,;:!?)\]]+$/, '');
    const href = url && safeHref(url);
    if (!href) return this.literally(4);
    this.push({ tag: 'a', href, children: [url] });
    this.at += url.length;
    return undefined;
  }

  // Pictures become links: loading them would tell others who reads what, and when.
  link() {
    const bracket = this.text.startsWith('![', this.at) ? this.at + 1 : this.at;
    if (this.text[bracket] !== '[' || this.depth >= MAX_DEPTH) return this.literally(1);
    const close = this.labelEnd(bracket);
    if (close === -1) return this.literally(1);
    const label = this.text.slice(bracket + 1, close);
    const target = this.match(TARGET, close + 1);
    const unfinished = !target && this.open && /^\([^)\n]*$/.test(this.text.slice(close + 1, close + 1 + MAX_LABEL));
    if (!target && !unfinished) return this.literally(1);
    const href = target && safeHref(target[1]);
    if (!href && !unfinished) return this.literally(1);
    const children = parseInline(label, { depth: this.depth + 1 });
    if (href) this.push({ tag: 'a', href, children });
    else children.forEach((child) => this.push(child));
    this.at = unfinished ? this.text.length : close + 1 + target[0].length;
    return undefined;
  }

  labelEnd(bracket) {
    this.lastBracket ??= this.text.lastIndexOf(']');
    if (bracket > this.lastBracket) return -1;
    let depth = 0;
    const last = Math.min(this.text.length, bracket + MAX_LABEL);
    for (let at = bracket; at < last; at += 1) {
      if (this.text[at] === '\\') at += 1;
      else if (this.text[at] === '[') depth += 1;
      else if (this.text[at] === ']') depth -= 1;
      if (depth === 0) return at;
    }
    return -1;
  }

  emphasis(sign) {
    let left = this.match(sign === '~' ? /~+/y : sign === '*' ? /\*+/y : /_+/y)[0].length;
    if (left > MAX_RUN || (sign === '~' && left !== 2)) return this.literally(left);
    const before = this.text[this.at - 1] ?? ' ';
    const after = this.text[this.at + left] ?? ' ';
    const inWord = sign === '_' && WORD.test(before) && WORD.test(after);
    while (left && !/\s/.test(before) && !inWord && this.closes(sign, left)) {
      const { length } = this.frames.at(-1).marker;
      this.close();
      this.at += length;
      left -= length;
    }
    const hangs = this.open && this.at + left === this.text.length; // what it is, the next token tells
    if (hangs) this.at += left;
    else if (left && !/\s/.test(after) && !inWord && this.frames.length < MAX_DEPTH) this.opens(sign, left);
    else if (left) this.literally(left);
    return undefined;
  }

  opens(sign, length) {
    const markers = { 1: [sign], 2: [sign + sign], 3: [sign, sign + sign] }[length];
    markers.forEach((marker) => this.frames.push({ marker, children: [] }));
    this.at += length;
  }

  /** Whether a run of `length` closes an emphasis; those that were open inside it were none. */
  closes(sign, length) {
    const at = this.frames.findLastIndex(({ marker }) => marker[0] === sign && marker.length <= length);
    if (at < 1) return false;
    while (this.frames.length - 1 > at) this.dissolve();
    return true;
  }

  close() {
    const { marker, children } = this.frames.pop();
    this.push({ tag: TAGS.get(marker), children });
  }

  dissolve() {
    const { marker, children } = this.frames.pop();
    this.push(marker);
    children.forEach((child) => this.push(child));
  }

  /** The text ends inside an emphasis. */
  finish() {
    const { marker } = this.frames.at(-1);
    if (this.open && marker !== '_') this.close();
    else this.dissolve();
  }
}
