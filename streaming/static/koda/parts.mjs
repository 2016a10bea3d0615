// The parts of an answer in the page: stretches of text and the calls of tools between them.

import { element, fromTemplate } from './dom.mjs';
import { Markdown } from './markdown.mjs';
import { t } from './texts.mjs';

const MAX_SHOWN = 100_000; // characters of what went into a tool or came out of it

export class Parts {
  #root;
  #views = new Map(); // key → { element, show }

  constructor(root) {
    this.#root = root;
  }

  /** Shows these parts and no others; with `open`, the last text is still being written. */
  update(parts, tools, { open = false } = {}) {
    const keys = new Set(parts.map(({ key }) => key));
    for (const [key, view] of this.#views) {
      if (!keys.has(key)) this.#drop(key, view);
    }
    parts.forEach((part, index) => {
      let view = this.#views.get(part.key);
      if (view && view.kind !== part.kind) view = this.#drop(part.key, view);
      view ??= this.#add(part, index);
      const isLast = index === parts.length - 1;
      // What is before the last part is drawn in full once, and is then as it is.
      if (isLast || !view.settled) view.show(part, tools, open && isLast);
      view.settled = !isLast && tools[part.id]?.status !== 'running';
    });
  }

  #add(part, index) {
    const view = { kind: part.kind, ...(part.kind === 'text' ? textView() : toolView()) };
    this.#views.set(part.key, view);
    this.#root.insertBefore(view.element, this.#root.children[index] ?? null);
    return view;
  }

  #drop(key, view) {
    view.element.remove();
    this.#views.delete(key);
  }
}

function textView() {
  const root = element('div', { className: 'text', dir: 'auto' });
  const markdown = new Markdown(root);
  return { element: root, show: ({ text }, _tools, open) => markdown.update(text, { open }) };
}

function toolView() {
  const root = fromTemplate('tool');
  const [name, state] = root.querySelectorAll('.name, .state');
  const [given, got] = root.querySelectorAll('pre');
  let tool;
  const fill = () => {
    if (!root.open) return;
    given.textContent = pretty(tool.input);
    got.textContent = tool.status === 'failed' ? pretty(tool.error) : pretty(tool.output);
    got.previousElementSibling.textContent = t(tool.status === 'failed' ? 'tool_error' : 'tool_output');
  };
  root.addEventListener('toggle', fill); // what nobody opens is not drawn
  return {
    element: root,
    show({ id }, tools) {
      if (tool === tools[id]) return;
      tool = tools[id];
      root.dataset.status = tool.status;
      name.textContent = tool.name;
      state.textContent = t(`tool_${tool.status}`);
      got.parentElement.hidden = tool.status === 'running';
      given.parentElement.hidden = tool.input === undefined;
      fill();
    },
  };
}

function pretty(value) {
  const text = typeof value === 'string' ? value : JSON.stringify(value ?? null, null, 2);
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}

/** All text of these parts, as it was written. */
export function textOf(parts) {
  return parts.filter(({ kind }) => kind === 'text').map(({ text }) => text).join('');
}
