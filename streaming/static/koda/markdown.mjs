// An answer's Markdown in the page, while it grows. A finished block is drawn once and never
// touched again; only the last one is drawn anew with what has arrived.

import { decided, parseBlocks } from './blocks.mjs';
import { build, element, morph } from './dom.mjs';
import { parseInline } from './inline.mjs';
import { t } from './texts.mjs';

const MAX_DEPTH = 12; // quotes in quotes; beyond it, text as it is

export class Markdown {
  #root;
  #depth;
  #text = '';
  #finished = 0; // so many characters are in blocks that are done with
  #last = null; // the block that may still change
  #list = null; // the list that goes on if the next block is an item of its kind

  constructor(root, depth = 0) {
    this.#root = root;
    this.#depth = depth;
  }

  /** Shows `text`, all of it so far; with `open`, more will come. */
  update(text, { open = false } = {}) {
    if (!text.startsWith(this.#text)) this.#clear();
    this.#text = text;
    const rest = text.slice(this.#finished);
    const blocks = parseBlocks(open ? decided(rest) : rest);
    blocks.forEach((block, index) => {
      const isLast = index === blocks.length - 1;
      this.#place(block, open && isLast);
      if (!isLast) this.#last = null;
    });
    this.#finished += blocks.at(-1)?.start ?? 0;
  }

  #clear() {
    this.#root.replaceChildren();
    this.#finished = 0;
    this.#last = null;
    this.#list = null;
  }

  #place(block, open) {
    const container = this.#containerOf(block);
    const fresh = DRAW[block.type](block, open, this.#depth);
    if (this.#last?.parentNode === container) this.#last = morph(this.#last, fresh);
    else {
      this.#last?.remove();
      container.append(fresh);
      this.#last = fresh;
    }
  }

  #containerOf({ type, kind, ordered, number }) {
    if (type !== 'item') {
      if (this.#list?.childElementCount === 1 && this.#list.contains(this.#last)) this.#list.remove();
      this.#list = null;
      return this.#root;
    }
    if (this.#list?.dataset.kind !== kind) {
      this.#list = element(ordered ? 'ol' : 'ul', { dataset: { kind } });
      if (ordered && number !== 1) this.#list.start = number;
      this.#root.append(this.#list);
    }
    return this.#list;
  }
}

// Each draws a block as one element.
const DRAW = {
  paragraph: ({ text }, open) => element('p', {}, ...build(parseInline(text, { open }))),
  // One level below the turn's own heading, whichever it is in the text: none is skipped then.
  heading: ({ level, text }, open) => element('h3', { dataset: { level } }, ...build(parseInline(text, { open }))),
  rule: () => element('hr'),
  code: drawCode,
  table: drawTable,
  quote: ({ text }, open, depth) => within(element('blockquote'), text, open, depth),
  item: drawItem,
};

function within(container, text, open, depth) {
  if (depth >= MAX_DEPTH) container.append(text);
  else new Markdown(container, depth + 1).update(text, { open });
  return container;
}

function drawItem({ text }, open, depth) {
  const task = /^\[([ xX])\][ \t]+/.exec(text);
  const made = within(element('li'), task ? text.slice(task[0].length) : text, open, depth);
  const first = made.firstElementChild;
  if (first?.tagName === 'P') first.replaceWith(...first.childNodes);
  if (task) {
    const done = task[1] !== ' ';
    made.className = 'task';
    const ariaLabel = t(done ? 'done' : 'to_do');
    made.prepend(element('input', { type: 'checkbox', disabled: true, defaultChecked: done, ariaLabel }));
  }
  return made;
}

function drawCode({ language, code }) {
  const copy = element('button', { type: 'button', className: 'quiet', textContent: t('copy') });
  copy.dataset.act = 'copy-code';
  const bar = element('div', { className: 'bar' }, element('span', { textContent: language }), copy);
  const pre = element('pre', { tabIndex: 0, dir: 'ltr' }, element('code', { textContent: code }));
  return element('div', { className: 'code' }, bar, pre);
}

function drawTable({ header, aligns, rows }) {
  const row = (cells, tag) => element('tr', {}, ...cells.map((cell, column) => {
    const made = element(tag, {}, ...build(parseInline(cell)));
    if (aligns[column]) made.className = aligns[column];
    if (tag === 'th') made.scope = 'col';
    return made;
  }));
  const head = element('thead', {}, row(header, 'th'));
  const body = element('tbody', {}, ...rows.map((cells) => row(cells, 'td')));
  const table = element('table', {}, head, body);
  return element('div', { className: 'wide', tabIndex: 0, role: 'group', ariaLabel: t('table') }, table);
}
